"""Checkpoints of a run as files: which there are, whether they are whole, and a copy that outlives the original.

What is in them is the trainer's business (``training/checkpoint.py``). Standard library only: tables and forks read
them without torch.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

FORMAT = 1
MANIFEST = "manifest.json"
STATE = "state.json"
# Matched in full: step-3.tmp and step-3.damaged are no checkpoints.
_STEP = re.compile(r"step-(\d+)")
# Answers of file systems that know no hard links, or not across this border.
_NO_LINKS = (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def checkpoints(folder: Path) -> list[Path]:
    """Return the folders of finished checkpoints in the order of their steps (unverified)."""
    found = [(int(match[1]), path) for path in folder.glob("step-*") if (match := _STEP.fullmatch(path.name))]
    return [path for _, path in sorted(found)]


def step_of(path: Path) -> int:
    """Return the step of a checkpoint, as the name of its folder says."""
    return int(path.name.removeprefix("step-"))


def has_checkpoint(folder: Path) -> bool:
    """Return True if there is a finished checkpoint (unverified)."""
    return any((path / MANIFEST).exists() for path in checkpoints(folder))


def problem_with(path: Path) -> str | None:
    """Return why a checkpoint cannot be trusted; None where every file of the manifest has its SHA-256."""
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
        hashes = {str(Path(name).name): str(expected) for name, expected in manifest["sha256"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        return f"its manifest cannot be read ({error!r:.200})"
    if manifest.get("format") != FORMAT:
        return f"format {manifest.get('format')} is not the format {FORMAT} that this version reads"
    for name, expected in hashes.items():
        try:
            found = file_hash(path / name)
        except (OSError, ValueError) as error:
            return f"{name} cannot be read ({error})"
        if found != expected:
            return f"{name} is damaged (SHA-256 differs from the manifest)"
    # Whole and yet without a word about it: nothing would say that the file is damaged, until it is read.
    if STATE not in hashes:
        return f"its manifest does not name {STATE}"
    return None


def state_of(path: Path) -> dict[str, Any]:
    """Read a checkpoint without its tensors: step, tokens, seconds, knobs turned, stage, recipe's hash."""
    state: dict[str, Any] = json.loads((path / STATE).read_text(encoding="utf-8"))
    return state


def identity_of(path: Path) -> str:
    """Return the SHA-256 of a checkpoint's manifest: the same for a copy, and for no other checkpoint."""
    return file_hash(path / MANIFEST)


def duplicate(path: Path, target: Path) -> None:
    """Give a checkpoint a second name, which outlives the first: by hard links, or copies where there are none.

    Safe as links, because files of a checkpoint are never written to again: a new one takes its place by rename.

    Args:
        path: the checkpoint; somebody may be deleting it meanwhile.

    Raises:
        OSError: the checkpoint is gone, or the disk is full; what there is of ``target`` is for the caller to remove.
    """
    target.mkdir()
    for file in sorted(path.iterdir()):
        try:
            os.link(file, target / file.name, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            shutil.copyfile(file, target / file.name, follow_symlinks=False)


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file, hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
