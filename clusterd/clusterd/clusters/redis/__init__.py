"""The index on Redis or on a Redis Cluster: `index` is its face, `home` and `lua` what changes together."""
