"""Which version of this package begins an experiment."""

from __future__ import annotations

import importlib.metadata


def version_here() -> str:
    """Of this package; empty for a source tree that is not installed."""
    try:
        return importlib.metadata.version("workbench")
    except importlib.metadata.PackageNotFoundError:
        return ""
