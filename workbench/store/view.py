"""One reading of a run: everything that plots, tables and widgets show, without torch and without the trainer."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from workbench.base.errors import RunError
from workbench.base.text import plain
from workbench.store.effective_knobs import EffectiveKnobs, effective_knobs
from workbench.store.evaluations import Measured, read_evaluations, scores_by_step
from workbench.store.folder import RunFolder, read_object
from workbench.store.labels import Labels, name_of, read_labels
from workbench.store.origin import Origin, origin_now
from workbench.store.reached import reached
from workbench.store.state import FINAL, actual_status, read_state
from workbench.telemetry.baselines import References, is_causal
from workbench.telemetry.streams import Telemetry, TelemetryReader, read_telemetry

LONGEST_SHOWN = 80


class Environment(dict[str, Any]):
    """Versions, device, measured rates and data of a run: a dict that shows itself without its long parts.

    Example:
        >>> Environment(cores=2, packages=["numpy"] * 100)
        {'cores': 2,
         'packages': <100 entries>}
    """

    def __repr__(self) -> str:
        return "{" + ",\n ".join(f"{key!r}: {_short(value)}" for key, value in self.items()) + "}"


def _short(value: Any) -> str:
    text = repr(value)
    if len(text) <= LONGEST_SHOWN:
        return text
    return f"<{len(value)} entries>" if isinstance(value, dict | list) else plain(text, LONGEST_SHOWN)


@dataclass(frozen=True)
class RunView:
    """One reading of a run, as plain data.

    Attributes:
        name: what people call it; data from a user, to be escaped wherever it is shown.
        status: what is true now (:func:`workbench.store.state.actual_status`).
        recipe: as in ``recipe.json``. state: every field of :class:`workbench.store.state.RunState`.
        environment: packages, device, measured rates; empty until the trainer wrote it.
        evaluations: as :func:`workbench.store.evaluations.read_evaluations`; empty until the first evaluation.
        scores: every score by step and name, those of benchmarks included.
        telemetry: all records so far.
        labels: name, tags and notes that people gave it.
        origin: of a fork, which checkpoint of which run it goes on from.
        forecast: what it was expected to take; empty where nobody had looked.
        place: among the runs that are watched, which decides its colour; None: its place among those drawn.
        knobs: of ``recipe``, as they are in force; empty without telemetry.
    """

    id: str
    name: str
    status: str
    recipe: dict[str, Any]
    state: dict[str, Any]
    environment: dict[str, Any]
    evaluations: dict[str, Any]
    telemetry: Telemetry
    scores: dict[int, dict[str, Measured]] = field(default_factory=dict)
    labels: Labels = field(default_factory=Labels)
    origin: Origin | None = None
    forecast: dict[str, Any] = field(default_factory=dict)
    place: int | None = None
    knobs: EffectiveKnobs = field(default_factory=EffectiveKnobs)

    @classmethod
    def read(cls, folder: RunFolder, reader: TelemetryReader | None = None, *, telemetry: bool = True) -> RunView:
        """Return everything about a run now. Missing or damaged parts read as empty.

        Args:
            reader: of its telemetry, for views that follow it: only what is new is read, and the views share the
                reader's growing :class:`Telemetry`. Without one a long run is downsampled.
            telemetry: False leaves it empty: of a long run it is all but a millisecond of the reading.
        """
        state = read_state(folder)
        # The status first: what a run wrote before it ended is then certainly in the telemetry that is read after it.
        status = actual_status(folder, state)
        # It ended, or was found lost, in between: the newer state has the error and the last numbers.
        if status != state.status:
            state = read_state(folder)
        if reader is not None:
            reader.poll()
            records = reader.telemetry
        else:
            records = read_telemetry(folder.telemetry) if telemetry else Telemetry()
        recipe, labels = read_object(folder.recipe), read_labels(folder)
        try:
            evaluations = read_evaluations(folder)
        except RunError:  # of a later version: everything else can be shown
            evaluations = {}
        return cls(
            id=folder.id,
            name=name_of(folder, recipe, labels),
            status=status,
            recipe=recipe,
            state=asdict(reached(folder, state, status)),
            environment=read_object(folder.environment),
            evaluations=evaluations,
            scores=scores_by_step(folder, evaluations),
            telemetry=records,
            labels=labels,
            origin=origin_now(folder),
            forecast=read_object(folder.forecast),
            knobs=effective_knobs(folder, records.events) if telemetry else EffectiveKnobs(),
        )

    @property
    def final(self) -> bool:
        """True when nothing will be added any more (unless the run is resumed)."""
        return self.status in FINAL

    @property
    def references(self) -> References:
        """Return what its held-out losses were measured with, and the baselines to hold them against."""
        return References.of(self.evaluations, self.environment, causal=is_causal(self.recipe))
