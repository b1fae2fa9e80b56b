"""The compiled cores, where they were built: the Python code beside each gives the same bytes and verdicts.

``CLUSTERD_PURE=1`` in the environment leaves them aside.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType

from clusterd_crawler.settings import PURE


def load(name: str) -> ModuleType | None:
    """Return a compiled core by the name of its module, None where there is none."""
    if os.environ.get(PURE) == "1" or sys.byteorder != "little":
        return None
    try:
        return import_module(name)
    except ImportError:
        return None


#: Stored sketches; buckets of postings; replies of Redis.
CORE = load("clusterd_consumer.core._verify")
BUCKETS = load("clusterd_consumer.core._buckets")
REPLIES = load("clusterd_consumer.core._replies")
