"""The Lab of JupyterLab's tab (``frontend/src/labextension``): one per browser window, which outlives page and kernel.

A page that is loaded again finds it by asking the same kernel; a new kernel finds what was composed in a file. A new
window begins with what was composed last, and from then on has a form of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jupyter_core.paths import jupyter_data_dir
from traitlets import TraitError

from workbench.jupyter.feed.registered_roots import key_of
from workbench.jupyter.lab.lab import Lab
from workbench.jupyter.runs.run_actions import ActionResult
from workbench.store.folder import read_object, runs_root, write_json

MOST_WINDOWS = 4
"""Windows whose Labs are kept; no page tells a kernel that its window was closed, and each page loads all of them."""
_labs: dict[tuple[Path, str], Lab] = {}
"""Runs folder and window -> the Lab that its tab shows, the one asked for last at the end."""


def lab_of_tab(runs_dir: str | Path | None = None, window: str = "") -> Lab:
    """Return the Lab that the tab of a browser window shows: always the same, however often its page asks.

    Args:
        runs_dir: the runs folder; else ``$WORKBENCH_RUNS``, else ``./runs``.
        window: a name that the page gives its window.
    """
    root = runs_root(runs_dir)
    lab = _labs.pop((root, window), None)
    if lab is None or lab.comm is None:
        lab = Lab(runs_dir=root, live=True)
        kept = _kept(file := kept_in(root))
        if before := kept.get(window) or next(reversed(kept.values()), None):
            _restore(lab, before)
        lab.observe(lambda change: _keep(lab, file, window, change["new"]), names="kept")
    _labs[root, window] = lab
    if len(_labs) > MOST_WINDOWS:
        _labs.pop(next(iter(_labs))).close()
    return lab


def kept_in(runs_dir: Path) -> Path:
    """Return the file of all compositions: with the user's other settings of Jupyter, one per runs folder."""
    # Not in the runs folder, which may be shared: what somebody is composing is nobody else's.
    return Path(jupyter_data_dir(), "workbench", "labs", f"{key_of(runs_dir)}.json")


def _restore(lab: Lab, before: dict[str, Any]) -> None:
    try:
        lab.restore(before)
    # A file of an older version: its recipe may be none any more, and any knob may be called otherwise.
    except (KeyError, TypeError, ValueError, TraitError) as error:
        lab.table.say(ActionResult(f"what was composed here before cannot be read any more: {error}", error=True))


def _kept(file: Path) -> dict[str, dict[str, Any]]:
    """Return window -> what was composed there, the one changed last at the end."""
    found = read_object(file)
    # A version with one form for all windows.
    return found["windows"] if isinstance(found.get("windows"), dict) else {"": found} if found else {}


def _keep(lab: Lab, file: Path, window: str, composition: dict[str, Any]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        others = {name: kept for name, kept in _kept(file).items() if name != window}
        write_json(file, {"windows": dict([*others.items(), (window, composition)][-MOST_WINDOWS:])})
    except OSError as error:
        lab.table.say(ActionResult(f"what you compose cannot be kept for another kernel: {error}", error=True))
