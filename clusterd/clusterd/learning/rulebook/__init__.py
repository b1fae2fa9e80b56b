"""The rule book: each host's evidence, rules and skips, and the service that learns from them."""
