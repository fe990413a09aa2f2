"""The outcome of a race, a sweep or a tuning for machines: one JSON object, whose keys are attributes, too."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, ClassVar

from workbench.base.errors import RunFailed, check_known
from workbench.base.text import facts_html, plain
from workbench.experiments.experiment_folder import ENDED
from workbench.experiments.words import FINAL
from workbench.store.folder import write_json

FAIL_ON = ("never", "worse", "undecided", "not-better")
"""Outcomes that fail a race in CI, each with all before it: nothing; an arm that is worse or has failed; one that is
undecided; one that is not better."""


def check_fail_on(fail_on: str) -> None:
    """Refuse what is none of :data:`FAIL_ON`.

    Raises:
        WorkbenchError: the message lists them.
    """
    check_known("fail_on", fail_on, FAIL_ON)


def summary_html(noun: str, status: str, summary: str) -> str:
    """Return a summary as a table of a notebook's cell."""
    first, *others = summary.splitlines() or [""]
    # "race ID (NAME) STATUS: how far".
    which, _, far = first.partition(f") {status}: ")
    which = f"{which.removeprefix(f'{noun} ')})" if far else ""
    # A saved notebook does not follow one that goes on.
    seen = "" if status in ENDED else time.strftime("%Y-%m-%d %H:%M")
    return facts_html(
        {noun: which, "status": status, "as of": seen, "so far": far or first, "it says": "\n".join(others)}
    )


class ExperimentResult(dict[str, Any]):
    """The result of an experiment, or its result so far: JSON-able, and each key is an attribute, too.

    Keys:
        its id under its noun, name, status, score, seeds, warnings, note, error, summary, and those of its kind.
    """

    noun: ClassVar[str]

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"a {self.noun}'s result has no '{name}'; it has {', '.join(self)}") from None

    def __str__(self) -> str:
        return str(self["summary"])

    def __repr__(self) -> str:
        # A notebook's last line: whole recipes and all rows would scroll it away.
        return f"<{plain(self['summary'], 400)}>"

    def _repr_html_(self) -> str:
        return summary_html(self.noun, str(self["status"]), str(self["summary"]))

    def require(self) -> None:
        """Raise unless it ended: the last line of a notebook that CI judges.

        Raises:
            RunFailed: it failed, was cancelled, or has not ended.
        """
        if self["status"] != "finished":
            found = FINAL if self["status"] == "cancelled" else self["error"]
            why = f": {found}" if found else ""
            raise RunFailed(f"{self.noun} '{self[self.noun]}' is {self['status']}{why}")

    def write(self, path: str | Path) -> Path:
        """Write it as JSON; returns the path.

        Raises:
            OSError: the folder cannot be written.
        """
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, dict(self))
        return path
