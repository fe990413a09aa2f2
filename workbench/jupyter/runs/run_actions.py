"""Requests of the page to runs, one function per verb; each returns its result or its refusal. No widget here."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.base.errors import RunError, WorkbenchError
from workbench.base.files import file_locked
from workbench.base.text import many
from workbench.client.comparison import compare, worded_differences
from workbench.client.run import Run
from workbench.client.scoring import Scoring, score
from workbench.client.titles import titles
from workbench.launchers.queue.changes import move
from workbench.launchers.report import report
from workbench.store.effective_knobs import effective_knobs, flat
from workbench.store.evaluations import is_part
from workbench.store.find import find
from workbench.store.labels import label
from workbench.store.score_table import ScoreRow
from workbench.store.trash import empty, restore

REQUESTS = ("pause", "resume", "stop", "checkpoint", "evaluate")
"""Verbs that a run itself answers; they go by :class:`~workbench.jupyter.steering.Steering`, not by a table."""
VERBS = (
    "watch", *REQUESTS, "next", "fork", "compare", "diff", "report", "score", "finetune", "export", "rename", "tag",
    "delete",
)  # fmt: skip
"""Verbs that the page offers."""
LOOKED_AT_SECONDS = 0.5
"""Between two looks at a scoring, which ends neither with the kernel nor with the page."""


@dataclass(frozen=True)
class ActionResult:
    """One sentence for the user.

    Attributes:
        text: what happened.
        error: whether something was refused.
        undo: ids of deleted runs that a button beside it brings back.
        sheet, page: what opens above the table, and its HTML.
        waits: id of a run in the queue, until whose start the words hold.
        going: it goes on, and more words follow; these give way to any other.
    """

    text: str
    error: bool = False
    undo: Sequence[str] = ()
    sheet: Mapping[str, Any] | None = None
    page: bytes | None = None
    waits: str = ""
    going: bool = False

    def message(self) -> dict[str, Any]:
        """As it is sent to the page."""
        # Runs and the status in which the words hold of them; the page takes them away with the next one.
        of = {"of": [[self.waits, "queued"]]} if self.waits else {}
        return {"text": self.text, "error": self.error, "undo": list(self.undo), "going": self.going, **of}


class RunActions:
    """The verbs, for runs of one runs folder.

    Args:
        composed: gives the recipe, as a dictionary, that stands in the composer; None where there is none.
    """

    def __init__(self, root: Path, composed: Callable[[], dict[str, Any] | None] = lambda: None) -> None:
        self.root, self._composed = root, composed
        self._verbs: dict[str, Callable[[list[Run], Mapping[str, Any]], Iterator[ActionResult]]] = {
            "next": self._next,
            "compare": self._compare,
            "diff": self._diff,
            "report": self._report,
            "score": self._score,
            "finetune": self._finetune,
            "export": self._export,
            "label": self._label,
            "delete": self._delete,
        }

    def perform(self, verb: str, run_ids: Sequence[str], rest: Mapping[str, Any]) -> Iterator[ActionResult]:
        """Do it; says so once, or once more when an answer comes later.

        Args:
            verb: ``next``, ``compare``, ``diff``, ``report``, ``score``, ``finetune``, ``export``, ``label``,
                ``delete``, ``restore`` or ``empty``.
            run_ids: of the runs.
            rest: what a verb takes besides: ``add``, ``remove``, ``notes``, ``name``; ``on`` (benchmarks, or a task);
                ``target``; ``places`` (colours).

        Raises:
            RunError: it could not be done at all.
        """
        if verb == "restore":
            # Deleted runs are in no list, so they are no runs yet.
            yield self._restore(run_ids)
            return
        if verb == "empty":
            count = empty(self.root)
            yield ActionResult(f"removed {many(count, 'deleted run')} for good")
            return
        # By id alone: what a page sends is never read as a path.
        runs = [Run(find(run_id, self.root)) for run_id in run_ids]
        if not runs:
            raise RunError("no run is selected")
        if verb not in self._verbs:
            raise RunError(f"'{verb}' is none of {', '.join((*self._verbs, 'restore', 'empty'))}")
        yield from self._verbs[verb](runs, rest)

    def _next(self, runs: list[Run], rest: Mapping[str, Any]) -> Iterator[ActionResult]:
        for run in runs:
            moved = move(str(run.folder.path), 1)
            yield ActionResult(f"{run.name}: {moved.text}", waits=run.id)

    def _label(self, runs: list[Run], rest: Mapping[str, Any]) -> Iterator[ActionResult]:
        notes, name, before = rest.get("notes"), rest.get("name"), _names(runs)
        names = [run.name for run in runs]
        for run in runs:
            label(run.folder, add=_texts(rest.get("add")), remove=_texts(rest.get("remove")), notes=notes, name=name)
        what = "tags" if notes is None else "note"
        told = f"{what} of {before} changed" if name is None else f"{before} is now called {_names(runs)}"
        if name is not None and names == [run.name for run in runs]:
            told = f"nothing changed: {before} {'is' if len(runs) == 1 else 'are'} called so"
        yield ActionResult(told)

    def _delete(self, runs: list[Run], rest: Mapping[str, Any]) -> Iterator[ActionResult]:
        gone, refused = [], []
        # The names first: afterwards there is nothing left to ask.
        named = [(run, run.name) for run in runs]
        for run, _ in named:
            try:
                run.delete()
                gone.append(run.id)
            except RunError as error:
                refused.append(str(error))
        count = f"{len(gone)} runs" if len(gone) != 1 else next(name for run, name in named if run.id == gone[0])
        messages = [f"moved {count} to the trash"] if gone else []
        yield ActionResult("; ".join([*messages, *refused]), bool(refused), undo=gone)

    def _restore(self, run_ids: Sequence[str]) -> ActionResult:
        back, refused = [], []
        for run_id in run_ids:
            try:
                back.append(Run(restore(run_id, self.root)))
            except RunError as error:
                refused.append(str(error))
        messages = [f"brought back {_names(back)}"] if back else []
        return ActionResult("; ".join([*messages, *refused]) or "nothing to bring back", bool(refused))

    def _compare(self, runs: list[Run], rest: Mapping[str, Any]) -> Iterator[ActionResult]:
        found = compare([run.folder for run in runs])
        title = f"Comparison of {_names(runs)}"
        yield ActionResult(f"compared {_names(runs)}", sheet={"kind": "compare", "title": title, **found})

    def _diff(self, runs: list[Run], rest: Mapping[str, Any]) -> Iterator[ActionResult]:
        called = titles([run.folder for run in runs])
        columns = [({"id": run.id, "name": title}, effective_knobs(run.folder).told)
                   for run, title in zip(runs, called, strict=True)]  # fmt: skip
        if len(columns) == 1:
            composed = self._composed()
            if composed is None:
                raise RunError("the recipe on the left cannot run as it is, so nothing can be compared with it")
            columns.append(({"id": "", "name": "the recipe on the left"}, flat(composed)))
        # By place: a run may be compared with itself, opened in the composer.
        knobs = worded_differences({str(place): knobs for place, (_, knobs) in enumerate(columns)})
        title = f"Knobs that differ: {' and '.join(str(run['name']) for run, _ in columns)}"
        sheet = {"kind": "diff", "title": title, "runs": [run for run, _ in columns], "knobs": knobs}
        yield ActionResult(f"{len(knobs)} knob{' differs' if len(knobs) == 1 else 's differ'}", sheet=sheet)

    def _report(self, runs: list[Run], rest: Mapping[str, Any]) -> Iterator[ActionResult]:
        yield ActionResult(f"report of {_names(runs)}: drawing the pictures")
        places = _places(rest.get("places"))
        if len(runs) == 1:
            path = report([runs[0].folder], places=places)
            page, place = path.read_bytes(), str(path)
        else:
            # Of several there is no folder that it would belong to, so it is not kept.
            page, place = _drawn(runs, places), ""
        file = f"report-{runs[0].id}.html"
        sheet = {"kind": "report", "title": f"Report of {_names(runs)}", "path": place, "file": file}
        yield ActionResult(f"report of {_names(runs)}: open in a window over this page", sheet=sheet, page=page)

    def _score(self, runs: list[Run], rest: Mapping[str, Any]) -> Iterator[ActionResult]:
        names, _, data = str(rest.get("on") or "").partition(" in ")
        if not names.strip():
            raise RunError("name benchmarks: fast, or blimp,piqa in FOLDER")
        run, told = runs[0], ""
        going = file_locked(run.folder.scoring_lock)
        scoring = Scoring(run) if going else score(run, names.strip(), data=data.strip() or None)
        while scoring.progress.get("status") == "running":
            before, told = told, f"scoring {run.name}: {scoring}"
            if told != before:
                yield ActionResult(told, going=True)
            time.sleep(LOOKED_AT_SECONDS)
        found = [ScoreRow(name, 0, score) for name, score in scoring.outcome().items() if not is_part(name)]
        said = "; ".join(f"{row.name} {row.value}" + (f" ({row.beside})" if row.beside else "") for row in found)
        yield ActionResult(f"scored {run.name}: {said}")

    def _finetune(self, runs: list[Run], rest: Mapping[str, Any]) -> Iterator[ActionResult]:
        # Here: it loads torch, which the page itself must not.
        from workbench.experiments.experiment_folder import FinetuningFolder
        from workbench.experiments.finetune.finetune import Finetuning, finetune

        task, _, data = str(rest.get("on") or "").partition(" in ")
        if not task.strip():
            raise RunError("name a task: boolq in FOLDER")
        yield ActionResult(f"fine-tuning {runs[0].name}: reading the task", going=True)
        begun = finetune(runs[0], task.strip(), data=data.strip() or None, untrained=True, say=None)
        assert isinstance(begun, Finetuning)
        learned = f"{many(len(begun.plan.jobs), 'run')} in this table, those of an untrained twin among them"
        here, again = FinetuningFolder.root(begun.plan.runs_dir), ""
        for other in (Finetuning(FinetuningFolder(here / each)) for each in Finetuning.kind.ids(begun.plan.runs_dir)):
            # One whose plan somebody damaged is not the same.
            with suppress(WorkbenchError):
                if other.id != begun.id and (other.plan.encoder, other.plan.asked) == (
                    begun.plan.encoder,
                    begun.plan.asked,
                ):
                    again = f"; the same was started before: {other.id}, {other.status}"
        yield ActionResult(
            f"fine-tuning {runs[0].name} on {begun.plan.task}: {learned}; its score becomes a column{again}"
        )

    def _export(self, runs: list[Run], rest: Mapping[str, Any]) -> Iterator[ActionResult]:
        target = rest.get("target")
        if not isinstance(target, str) or not target.strip():
            raise RunError("name a new folder to export to")
        yield ActionResult(f"exporting {runs[0].name}: this takes some seconds")
        yield ActionResult(f"exported {runs[0].name} to {runs[0].export(target.strip())}")


def _drawn(runs: Sequence[Run], places: Mapping[str, int]) -> bytes:
    """Return the report of several runs; drawn by another process, since pictures would hold up this one's cells."""
    with tempfile.TemporaryDirectory(prefix="workbench-") as aside:
        return report([run.folder for run in runs], Path(aside, "report.html"), places).read_bytes()


def _names(runs: Sequence[Run]) -> str:
    names = titles([run.folder for run in runs])
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} runs"


def _places(value: Any) -> dict[str, int]:
    """Return the places that the page has sent: id of a run -> its place among those that are drawn."""
    found = value.items() if isinstance(value, dict) else ()
    return {run: place for run, place in found if type(place) is int and place >= 0}


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
