"""Edits of URLs that may turn out not to matter, each kind in a file of its own."""
