"""The rule book: what the daemon keeps of each host's evidence, rules and skips, and the service that learns from it."""
