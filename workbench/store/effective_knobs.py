"""The knobs of a run as they are in force: those of its recipe, and what was steered while it trained. No torch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from workbench.base.fields import flatten, same
from workbench.store.control import read_knobs
from workbench.store.folder import RunFolder, read_json
from workbench.telemetry.streams import Record, read_events


class Steered(NamedTuple):
    """A knob that has another value than the run was launched with."""

    launched: Any
    value: Any
    step: int | None
    """Step of the last change; None where no telemetry tells."""

    def __str__(self) -> str:
        at = "" if self.step is None else f" at step {self.step}"
        before, now = ("none" if each is None else each for each in (self.launched, self.value))
        return f"{before} \N{RIGHTWARDS ARROW} {now}{at}"


class Turn(NamedTuple):
    """A knob that was set while a run trained."""

    step: int
    path: str
    before: Any
    value: Any

    def __str__(self) -> str:
        # A schedule goes by its name.
        before, value = (
            each.get("kind", each) if isinstance(each, Mapping) else each for each in (self.before, self.value)
        )
        return f"{self.path} {Steered(before, value, self.step)}"


@dataclass(frozen=True)
class EffectiveKnobs:
    """Knobs by dotted path.

    Attributes:
        values: numbers, texts and truth values, as they are now.
        steered: those of them that the run was not launched with.
    """

    values: dict[str, Any] = field(default_factory=dict)
    steered: dict[str, Steered] = field(default_factory=dict)

    @property
    def told(self) -> dict[str, Any]:
        """Return the values; a steered one as text, so that it equals none that always stood."""
        return self.values | {path: str(knob) for path, knob in self.steered.items()}

    def over(self, recipe: Any) -> dict[str, Any]:
        """Return a recipe's knobs by dotted path, in its order and as JSON has them; steered ones as told."""
        launched = flatten(recipe)
        if not self.steered:
            return launched
        # A schedule that was steered away took its knobs along, and another came with its own.
        return {path: value for path, value in launched.items() if path in self.values} | {
            path: value for path, value in self.told.items() if path not in launched or path in self.steered
        }


def effective_knobs(folder: RunFolder, events: Iterable[Record] | None = None) -> EffectiveKnobs:
    """Return the effective knobs of a run; ``recipe.json`` has those of the launch alone.

    Args:
        events: of its telemetry, where they were read already; read here if a knob was steered and None is given.
    """
    launched = flat(read_json(folder.recipe, {}))
    values, changed = dict(launched), {}
    for knob in read_knobs(folder):
        path = knob.get("path")
        if not isinstance(path, str):
            continue
        before = {each: value for each, value in launched.items() if each == path or each.startswith(f"{path}.")}
        now = flat({path: knob.get("value")})
        # A recipe from before there was such a knob says nothing of it.
        if not before or same(before, now):
            continue
        values = {each: value for each, value in values.items() if each not in before} | now
        kind = f"{path}.kind"
        for each, value in now.items():
            # A number may have become a schedule, and the other way round.
            if each not in before and each not in (path, kind):
                continue
            old = before[each] if each in before else before.get(path, before.get(kind))
            if not same(old, value):
                changed[each] = old, value
    steps = _steps(read_events(folder.telemetry) if events is None else events) if changed else {}
    found = {path: Steered(old, value, _step_of(path, steps)) for path, (old, value) in changed.items()}
    return EffectiveKnobs(values, found)


def turns_until(folder: RunFolder, step: int, overrides: Mapping[str, Any] | None = None) -> list[Turn]:
    """Return knobs that were set up to a checkpoint, in their order; what a resume undid is left out.

    Args:
        step: of the checkpoint.
        overrides: knobs that were turned by then, as the checkpoint has them; None for whatever was turned.
    """
    launched, found = flatten(read_json(folder.recipe, {})), list[Turn]()
    for event in read_events(folder.telemetry):
        data, at = event.get("data"), event.get("step")
        if not isinstance(at, int):
            continue
        # A resume from before a change trains without it; the checkpoint of its very step may be from before or after.
        if event.get("kind") == "start":
            kept = not isinstance(data, Mapping) or data.get("turned", True)
            found = [turn for turn in found if turn.step < at or (kept and turn.step == at)]
        path = str(data.get("path")) if event.get("kind") == "knob" and isinstance(data, Mapping) else ""
        if isinstance(data, Mapping) and (overrides is None or path in overrides) and at <= step:
            first = launched.get(path, launched.get(f"{path}.kind"))
            before = next((turn.value for turn in reversed(found) if turn.path == path), first)
            if not same(before, data.get("value")):
                found.append(Turn(at, path, before, data.get("value")))
    return found


def flat(recipe: Any) -> dict[str, Any]:
    """Return a recipe's knobs by dotted path: numbers, texts and truth values; lists as text."""
    plain = (str, int, float, type(None))
    return {path: value if isinstance(value, plain) else str(value) for path, value in sorted(flatten(recipe).items())}


def _steps(events: Iterable[Record]) -> dict[str, int]:
    """Step at which each knob took its last value, by the path that was set."""
    last: dict[str, tuple[int, Any]] = {}
    for event in events:
        data, step = event.get("data"), event.get("step")
        if event.get("kind") != "knob" or not isinstance(data, Mapping) or not isinstance(step, int):
            continue
        path, value = str(data.get("path")), data.get("value")
        # Set again to what it is, it did not change; unless the run was resumed from before the change.
        if path not in last or step < last[path][0] or not same(last[path][1], value):
            last[path] = step, value
    return {path: step for path, (step, _) in last.items()}


def _step_of(path: str, steps: Mapping[str, int]) -> int | None:
    """Return the step of a knob's last change, or of its schedule's."""
    fitting = [step for each, step in steps.items() if path == each or path.startswith(f"{each}.")]
    return max(fitting, default=None)
