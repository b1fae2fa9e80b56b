"""Daemon → crawl: rule sets and verdicts, read by a thread of their own."""
