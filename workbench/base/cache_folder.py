"""The cache: all that can be made again, such as prepared text, compiled graphs and measured rates."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_VARIABLE = "WORKBENCH_CACHE"


def cache_folder() -> Path:
    """Return ``$WORKBENCH_CACHE``, else the user's cache directory."""
    # Read at every call: tests and notebooks move the cache while the process runs.
    root = os.environ.get(CACHE_VARIABLE)
    if root:
        return Path(root)
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "workbench"
