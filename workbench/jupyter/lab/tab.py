"""The Lab of JupyterLab's tab (``frontend/src/labextension``): one per kernel, which goes on where the last one ended.

A page that is loaded again finds it by asking the same kernel; a new kernel finds what was composed in a file.
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

_labs: dict[Path, Lab] = {}
"""Runs folder -> the Lab that its tab shows."""


def lab_of_tab(runs_dir: str | Path | None = None) -> Lab:
    """The Lab that this kernel's tab shows: always the same, however often a page asks.

    Args:
        runs_dir: the runs folder; else ``$WORKBENCH_RUNS``, else ``./runs``.
    """
    root = runs_root(runs_dir)
    lab = _labs.get(root)
    if lab is None or lab.comm is None:
        lab = _labs[root] = Lab(runs_dir=root, live=True)
        file = kept_in(root)
        if before := read_object(file):
            _restore(lab, before)
        lab.observe(lambda change: _keep(lab, file, change["new"]), names="kept")
    return lab


def kept_in(runs_dir: Path) -> Path:
    """Return the file of the composition: with the user's other settings of Jupyter, one per runs folder."""
    # Not in the runs folder, which may be shared: what somebody is composing is nobody else's.
    return Path(jupyter_data_dir(), "workbench", "labs", f"{key_of(runs_dir)}.json")


def _restore(lab: Lab, before: dict[str, Any]) -> None:
    try:
        lab.restore(before)
    # A file of an older version: its recipe may be none any more, and any knob may be called otherwise.
    except (KeyError, TypeError, ValueError, TraitError) as error:
        lab.table.say(ActionResult(f"what was composed here before cannot be read any more: {error}", error=True))


def _keep(lab: Lab, file: Path, composition: dict[str, Any]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_json(file, composition)
    except OSError as error:
        lab.table.say(ActionResult(f"what you compose cannot be kept for another kernel: {error}", error=True))
