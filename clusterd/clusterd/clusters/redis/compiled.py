"""The compiled core (`_versions.c`), where it was built: the Python code beside it gives the same bytes.

``CLUSTERD_PURE=1`` in the environment leaves it aside.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType


def load() -> ModuleType | None:
    """Return the compiled core, None where there is none."""
    if os.environ.get("CLUSTERD_PURE") == "1" or sys.byteorder != "little":
        return None
    try:
        from clusterd.clusters.redis import _versions
    except ImportError:
        return None
    return _versions


CORE = load()
