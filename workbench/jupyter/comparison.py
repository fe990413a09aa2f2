"""``workbench.compare``: runs side by side, as table, picture and differing knobs; live where a page shows it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.base.errors import RunError
from workbench.base.text import aligned, plain
from workbench.client import comparison
from workbench.client.run import Run
from workbench.client.run_list import select
from workbench.client.titles import titled, titles
from workbench.launchers.report import report
from workbench.store.effective_knobs import effective_knobs
from workbench.store.evaluations import is_part
from workbench.store.folder import RunFolder, read_object
from workbench.store.measured import memory_for_training
from workbench.store.result import frame

if TYPE_CHECKING:
    import pandas

    from workbench.store.view import RunView


DRAWN = 8
"""Runs in one picture: nobody tells more colours and dashes apart."""
_LONGEST = 2000
"""Characters of all knobs of a choice, which terminals wrap."""
_NUMBERS = (
    "run", "name", "state", "heldout_loss", "train_loss", "bits_per_byte", "unigram_entropy", "bigram_entropy",
    "learned", "tokens_per_second", "mfu", "memory_for_training_gib", "steps", "tokens", "seconds", "parameters",
)  # fmt: skip


def compare(*runs: Any, runs_dir: str | Path | None = None) -> Comparison:
    """Return runs side by side: what they achieved, their curves, and the knobs in which their recipes differ.

    As the last expression of a cell it displays itself: live while any of the runs is going and a page is open, else
    as tables and a picture that need neither kernel nor scripts. For a single run, all choices are shown.

    Args:
        *runs: runs, their ids (or unique prefixes), names, globs over both (``"bert*"``), or lists of these. The first
            gets the first colour, and is the reference for speeds in the report.
        runs_dir: the runs folder of ids, names and globs; else ``$WORKBENCH_RUNS``, else ``./runs``.

    Raises:
        RunError: nothing is given, or it matches no run; the message names the nearest.

    Example:
        >>> import workbench as wb
        >>> wb.compare("every layer", "dropping layers").frame()  # doctest: +SKIP
    """
    try:
        return Comparison(select(runs, runs_dir))
    except RunError as error:
        from workbench.experiments.open import matching

        held = [each for text in runs if isinstance(text, str) for each in matching(text, runs_dir)]
        if not held:
            raise
        noun, command = held[0].kind.noun, held[0].folder.command
        raise RunError(f"{error}. There is a {noun} of that name: `{command}` shows it") from None


class Comparison:
    """Several runs, read again each time something is asked of them.

    Args:
        runs: at least one.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = list(runs)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One mapping per run: what it achieved, its scores by name, and the knobs that differ, by dotted path.

        ``memory_for_training_gib``: at most, beyond what its process held before there was a model.
        """
        knobs = self.knobs
        results = [{**run.result, "memory_for_training_gib": memory_for_training(run.view())} for run in self.runs]
        scores = dict.fromkeys(name for result in results for name in result["scores"] if not is_part(name))
        return [
            {
                **{name: result[name] for name in _NUMBERS},
                **{name: result["scores"].get(name, {}).get("value") for name in scores},
                **{path: values[place] for path, values in knobs.items()},
            }
            for place, result in enumerate(results)
        ]

    @property
    def knobs(self) -> dict[str, list[Any]]:
        """The knobs that differ, by dotted path: a value per run, None where a run has no such knob.

        Of a steered one the text has both values and the step.
        """
        # By place: the same recipe may have been launched twice.
        recipes = {str(place): effective_knobs(run.folder).told for place, run in enumerate(self.runs)}
        return {knob["path"]: knob["values"] for knob in comparison.differences(recipes)}

    def frame(self) -> pandas.DataFrame:
        """Return :attr:`rows` as a pandas table, one row per run.

        Raises:
            WorkbenchError: pandas is not installed.
        """
        return frame(self.rows)

    def report(self, path: str | Path | None = None) -> Path:
        """Write one HTML page with tables and zoomable plots; returns its path, shown as a link.

        Args:
            path: the file, which is replaced; None for one in the runs folder (for a single run, in its own folder).

        Raises:
            RunError: it could not be drawn or written.
        """
        return report([run.folder for run in self.runs], path)

    def __repr__(self) -> str:
        from workbench.plots.static import summary_text

        lines = [f"{path}: {' | '.join(map(_shown, values))}" for path, values in self.knobs.items()]
        lines = lines if len(self.runs) > 1 else [_choices(self.runs[0].folder)]
        views = self._views
        return "\n".join([summary_text(views), "", *self._notes(views), self._difference, *lines])

    def _ipython_display_(self) -> None:
        from workbench.jupyter.headless import in_page
        from workbench.jupyter.watch.monitor import Monitor, publish

        if in_page() and not all(run.final for run in self.runs):
            Monitor(self.runs[:DRAWN]).show()
            publish({"text/html": self._knobs_html(), "text/plain": self._difference})
        else:
            publish(self._bundle())

    def _bundle(self) -> dict[str, Any]:
        """Return everything as it is now, for where nothing moves."""
        from workbench.plots.static import facts_html, summary_bundle

        views = self._views
        drawn = summary_bundle(views[:DRAWN])
        rest = facts_html(views[DRAWN:]) if views[DRAWN:] else ""
        return drawn | {"text/html": drawn["text/html"] + rest + self._knobs_html(), "text/plain": repr(self)}

    @property
    def _views(self) -> list[RunView]:
        """Runs of one name told apart."""
        return titled([run.view() for run in self.runs], [run.folder for run in self.runs])

    def _notes(self, views: Sequence[RunView]) -> list[str]:
        return list(comparison.compare([run.folder for run in self.runs], views)["notes"])

    @property
    def _difference(self) -> str:
        if len(self.runs) == 1:
            return "Recipe"
        return "Knobs that differ" if self.knobs else "No knob differs: these runs have the same recipe."

    def _knobs_html(self) -> str:
        from workbench.plots.tables import choices_table, table

        if len(self.runs) == 1:
            folder = self.runs[0].folder
            knobs = choices_table(read_object(folder.recipe), effective_knobs(folder))
        else:
            rows = [(path, list(map(_shown, values))) for path, values in self.knobs.items()]
            knobs = table(titles([run.folder for run in self.runs]), rows) if rows else ""
        notes = "".join(f"<p>{escape(note)}</p>" for note in self._notes(self._views))
        return f"{notes}<p><strong>{self._difference}</strong></p>{knobs}"


def _choices(folder: RunFolder) -> str:
    """Return a run's recipe as text, a line per axis."""
    from workbench.plots.tables import choices

    rows = choices(read_object(folder.recipe), effective_knobs(folder))
    return aligned([tuple(plain(cell, _LONGEST) for cell in row) for row in rows]) if rows else "not known"


def _shown(value: Any) -> str:
    return "-" if value is None else plain(value, 80)
