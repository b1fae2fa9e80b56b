"""How messages travel. The contract is `contract.Transport`; Kafka and Redis Streams keep it."""
