"""Daemon → crawl: rule sets, verdicts and known pages, read by a thread of their own."""
