"""``launched.json``: by which launcher, from which folder and with which Python and settings a run was launched.

A Jupyter server often has another Python than its kernels, and knows nothing of ``%env CUDA_VISIBLE_DEVICES=1`` in a
notebook. So the file names both; they are used only where nobody but this user can have written it, since a Python that
somebody else names would run whatever they like. No secrets are kept: only the names below.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from workbench.base.json_lines import number
from workbench.store.folder import RunFolder, read_object, write_json

SETTINGS = (
    "CUDA_DEVICE_ORDER", "CUDA_VISIBLE_DEVICES", "GLIBC_TUNABLES", "HF_DATASETS_CACHE", "HF_DATASETS_OFFLINE",
    "HF_HOME", "HF_HUB_OFFLINE", "HIP_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "MKL_NUM_THREADS", "NVIDIA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS", "ROCR_VISIBLE_DEVICES", "THP_MEM_ALLOC_ENABLE", "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR",
    "WORKBENCH_CACHE", "WORKBENCH_OWNER", "WORKBENCH_QUEUE", "WORKBENCH_REPORT", "XDG_CACHE_HOME",
)  # fmt: skip
"""Environment variables that decide where a run computes, keeps its caches, and whether it ends with a report."""


@dataclass(frozen=True)
class Launched:
    """One reading of ``launched.json``; what is missing or damaged reads as the default.

    Attributes:
        on: kind of the launcher. knobs: of the launcher.
        folder: working folder of the launching process; relative paths of the recipe start there.
        python, settings: of the launching process.
        time: Unix time of the launch.
        handle: of the launcher; empty until it has one.
    """

    on: str = "local"
    knobs: dict[str, Any] = field(default_factory=dict)
    folder: str = ""
    python: str = ""
    settings: dict[str, str] = field(default_factory=dict)
    time: float = 0.0
    handle: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def here(cls, on: str, folder: str | Path, knobs: dict[str, Any] | None = None) -> Launched:
        """Return a launch by this process, now."""
        settings = {name: os.environ[name] for name in SETTINGS if name in os.environ}
        return cls(on, knobs or {}, str(folder), sys.executable, settings, time.time())

    @classmethod
    def read(cls, folder: RunFolder) -> Launched:
        """Return the launch of a run."""
        raw = read_object(folder.launched)
        texts = {name: raw[name] for name in ("on", "folder", "python") if isinstance(raw.get(name), str)}
        knobs, settings, handle = (
            raw[name] if isinstance(raw.get(name), dict) else {} for name in ("knobs", "settings", "handle")
        )
        settings = {name: text for name, text in settings.items() if name in SETTINGS and isinstance(text, str)}
        return cls(**texts, knobs=knobs, settings=settings, handle=handle, time=number(raw.get("time")))

    def write(self, folder: RunFolder, handle: dict[str, Any] | None = None) -> None:
        """Write it, with another handle where one is given.

        Raises:
            OSError: the disk is full, or the folder is gone.
        """
        found = self if handle is None else replace(self, handle=handle)
        write_json(folder.launched, asdict(found), durable=handle is None)
        # Under a umask that lets the group write, nobody could trust what is named there.
        folder.launched.chmod(folder.launched.stat().st_mode & ~(stat.S_IWGRP | stat.S_IWOTH))


def working_folder(folder: RunFolder) -> Path:
    """Return where relative paths of a run's recipe start: as at its launch, wherever it is resumed from."""
    first = Launched.read(folder).folder
    # Deleted since: a recipe of absolute paths, or of none, does not need it.
    return Path(first) if first and Path(first).is_dir() else Path.cwd()


def launch_environment_of(folder: RunFolder) -> tuple[str, dict[str, str]]:
    """Return Python and settings to start a run again with: its own where they can be trusted, else this process's."""
    if not (_ours_alone(folder.path, stat.S_ISDIR) and _ours_alone(folder.launched, stat.S_ISREG)):
        return sys.executable, {}
    launched = Launched.read(folder)
    # An environment that was deleted since; runs from before this was written down name none.
    if not (os.path.isabs(launched.python) and os.access(launched.python, os.X_OK)):
        return sys.executable, {}
    return launched.python, launched.settings


def _ours_alone(path: Path, kind: Any) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return kind(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
