"""One reading of a run: everything that plots, tables and widgets show, without torch and without the trainer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from workbench.floors import Yardstick, is_causal
from workbench.runs.folder import RunFolder, read_object
from workbench.runs.forks.origin import Origin, origin_of
from workbench.runs.labels import Labels, read_labels
from workbench.runs.state import FINAL, actual_status, read_state
from workbench.telemetry import Telemetry, TelemetryReader, read_telemetry


@dataclass(frozen=True)
class RunView:
    """What a run has asked, done and said, as plain data.

    Attributes:
        id: the run id; also the name of its folder.
        name: what people call it; data from a user, to be escaped wherever it is shown.
        status: what is true now (:func:`workbench.runs.state.actual_status`).
        recipe: as in ``recipe.json``. state: every field of :class:`workbench.runs.state.RunState`.
        environment: packages, device, measured rates; empty until the trainer wrote it.
        evaluations: ``score``, floors, ``heldout`` and ``result``; empty until the first evaluation.
        telemetry: all records so far.
        labels: tags and notes that people gave it. origin: of a fork, which checkpoint of which run it goes on from.
        forecast: what it was expected to take; empty where nobody had looked.
    """

    id: str
    name: str
    status: str
    recipe: dict[str, Any]
    state: dict[str, Any]
    environment: dict[str, Any]
    evaluations: dict[str, Any]
    telemetry: Telemetry
    labels: Labels = field(default_factory=Labels)
    origin: Origin | None = None
    forecast: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: RunFolder) -> RunView:
        """Everything about a run now, a long one thinned. Missing or damaged parts read as empty."""
        return _view(folder, lambda: read_telemetry(folder.telemetry))

    @property
    def final(self) -> bool:
        """True when nothing will be added any more (unless the run is resumed)."""
        return self.status in FINAL

    @property
    def yardstick(self) -> Yardstick:
        """What its held-out losses were measured with, and the floors to hold them against."""
        return Yardstick.of(self.evaluations, self.environment, causal=is_causal(self.recipe))


def follow(folder: RunFolder, reader: TelemetryReader) -> RunView:
    """A fresh view that re-reads only what is new: ``reader`` keeps the byte offsets between calls.

    Args:
        folder: the run's folder.
        reader: of ``folder.telemetry``; the view shares its growing :class:`Telemetry`.
    """

    def poll() -> Telemetry:
        reader.poll()
        return reader.telemetry

    return _view(folder, poll)


def _view(folder: RunFolder, telemetry: Callable[[], Telemetry]) -> RunView:
    state = read_state(folder)
    # The status first: what a run wrote before it ended is then certainly in the telemetry that is read after it.
    status = actual_status(folder, state)
    # It ended, or was found lost, in between: the newer state has the error and the last numbers.
    if status != state.status:
        state = read_state(folder)
    records = telemetry()
    recipe = read_object(folder.recipe)
    name = recipe.get("name")
    return RunView(
        id=folder.id,
        name=name if isinstance(name, str) and name else folder.id,
        status=status,
        recipe=recipe,
        state=asdict(state),
        environment=read_object(folder.environment),
        evaluations=_readable(read_object(folder.evaluations)),
        telemetry=records,
        labels=read_labels(folder),
        origin=origin_of(folder),
        forecast=read_object(folder.forecast),
    )


def _readable(evaluations: dict[str, Any]) -> dict[str, Any]:
    """Without what is damaged: ``heldout`` is a list of objects and ``result`` an object, or they are absent."""
    heldout, result = evaluations.pop("heldout", None), evaluations.pop("result", None)
    if isinstance(heldout, list):
        evaluations["heldout"] = [point for point in heldout if isinstance(point, dict)]
    return evaluations | ({"result": result} if isinstance(result, dict) else {})
