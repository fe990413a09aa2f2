"""On which machines, and by which revisions, the runs of an experiment were trained."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from workbench.store.folder import RunFolder, read_object
from workbench.store.trash import wherever

SAID = ("device", "cores", "threads", "python", "git")
"""Of each run's environment; ``git`` is the revision of the checkout that trained it, None where it was installed."""


def trained_on(folders: Iterable[RunFolder]) -> list[dict[str, Any]]:
    """Each setting in which runs were trained, with their number as ``runs``; the most frequent first.

    Beside :data:`SAID` it names torch's ``torch`` and the package's own version, ``workbench``; no host name.
    """
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for folder in folders:
        known = read_object(wherever(folder).environment)
        if known:
            packages = known.get("packages") or {}
            setting = {key: known.get(key) for key in SAID} | {key: packages.get(key) for key in ("torch", "workbench")}
            found.setdefault(tuple(setting.values()), {**setting, "runs": 0})["runs"] += 1
    return sorted(found.values(), key=lambda each: -each["runs"])
