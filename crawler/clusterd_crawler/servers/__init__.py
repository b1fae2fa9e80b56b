"""Where Kafka and Redis are, and how they are spoken to: addresses (never with their passwords in an error), clients,
and what of a client's log is worth a line in the crawl's.
"""
