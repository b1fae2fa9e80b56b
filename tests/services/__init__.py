"""Real servers for the tests: Redis, a Redis Cluster of three nodes, Kafka. Each on loopback, each its own folder."""
