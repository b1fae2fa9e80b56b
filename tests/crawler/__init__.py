"""Tests of the crawl's side."""
