"""``python -m clusterd`` is the command line."""

from __future__ import annotations

from clusterd.cli import main

main()
