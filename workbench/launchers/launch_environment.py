"""The Python and the settings that a run was launched with, for whoever starts it again from other ones.

A Jupyter server often has another Python than its kernels, and knows nothing of ``%env CUDA_VISIBLE_DEVICES=1`` in a
notebook. So ``launched.json`` names them; they are used only where nobody but this user can have written that file,
since a Python that somebody else names would run whatever they like. No secrets are kept: only the names below.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

from workbench.store.folder import RunFolder, read_object

SETTINGS = (
    "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "GLIBC_TUNABLES", "HF_DATASETS_CACHE", "HF_DATASETS_OFFLINE",
    "HF_HOME", "HF_HUB_OFFLINE", "HIP_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "MKL_NUM_THREADS", "NVIDIA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS", "ROCR_VISIBLE_DEVICES", "THP_MEM_ALLOC_ENABLE", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR",
    "WORKBENCH_CACHE", "WORKBENCH_OWNER", "WORKBENCH_QUEUE", "WORKBENCH_REPORT", "XDG_CACHE_HOME",
)  # fmt: skip
"""Environment variables that decide where a run computes, keeps its caches, and whether it ends with a report."""


def launch_environment() -> dict[str, Any]:
    """``{"python", "settings"}`` of this process, as ``launched.json`` holds them."""
    return {"python": sys.executable, "settings": {name: os.environ[name] for name in SETTINGS if name in os.environ}}


def launch_environment_of(folder: RunFolder) -> tuple[str, dict[str, str]]:
    """Python and settings to start a run again with: its own where they can be trusted, else this process's."""
    ours: tuple[str, dict[str, str]] = (sys.executable, {})
    if not (_ours_alone(folder.path, stat.S_ISDIR) and _ours_alone(folder.launched, stat.S_ISREG)):
        return ours
    raw = read_object(folder.launched)
    python, settings = raw.get("python"), raw.get("settings")
    # An environment that was deleted since; runs from before this was written down name none.
    if not (isinstance(python, str) and os.path.isabs(python) and os.access(python, os.X_OK)):
        return ours
    known = settings if isinstance(settings, dict) else {}
    return python, {name: value for name, value in known.items() if name in SETTINGS and isinstance(value, str)}


def _ours_alone(path: Path, kind: Any) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return kind(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
