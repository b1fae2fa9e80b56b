"""What is compiled, in C: stored sketches, buckets of postings, replies of Redis. `compiled` loads what was built."""
