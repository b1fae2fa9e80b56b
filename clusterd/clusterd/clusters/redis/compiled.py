"""The compiled core (`_versions.c`), where it was built: the Python code beside it gives the same bytes."""

from __future__ import annotations

from clusterd_consumer.core.compiled import load

CORE = load("clusterd.clusters.redis._versions")
