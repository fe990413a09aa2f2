"""Schedules one after the other, each with a height and a share of the run of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import ClassVar, Literal

from pydantic import model_validator

from workbench.choices.choice import knob, one_of
from workbench.choices.schedules.handles import NARROWEST, Handle, Pull, pull
from workbench.choices.schedules.schedule import Schedule
from workbench.choices.schedules.warmup_hold_decay import WarmupHoldDecay


class Phases(Schedule):
    """Other schedules one after the other, each stretched over its own phase and multiplied by its own peak.

    v(x) = peaks[i] s_i((x - b_i) / (b_(i+1) - b_i)) for b_i <= x < b_(i+1), where s_i is ``parts[i]``, b_0 = 0, the
    boundaries after it are ``until`` and the last is ``length``. A part's own lengths are shares of its phase.

    Source: the two phases of BERT pre-training in Zheng et al. 2020 (arXiv 2006.13484), each with a peak, warm-up and
    plateau of its own.

    Example:
        >>> shape = Phases(parts=("linear", "linear"), peaks=(1.0, 0.5), until=(0.8,))
        >>> [round(shape.value(x), 3) for x in (0.0, 0.4, 0.8, 0.9, 1.0)]
        [1.0, 0.5, 0.5, 0.25, 0.0]
    """

    levels: ClassVar[tuple[str, ...]] = ("peaks",)
    kind: Literal["phases"] = "phases"
    parts: tuple[one_of(Schedule), ...] = knob(  # type: ignore[valid-type]
        help="shape of each phase (its kind, or JSON); its lengths are shares of the phase",
        default_factory=lambda: (WarmupHoldDecay(warmup=0.1), WarmupHoldDecay(warmup=0.1)),
        min_length=1,
        max_length=64,
    )
    peaks: tuple[float, ...] = knob((1.0, 0.5), "factor of each phase", min_length=1)
    until: tuple[float, ...] = knob((0.5,), "where each phase but the last ends, in units of `over`")
    length: float = knob(1.0, "where the last phase ends, in units of `over`", gt=0)

    @model_validator(mode="after")
    def _phases_fit(self) -> Phases:
        count = len(self.parts)
        if len(self.peaks) != count:
            raise ValueError(f"{count} parts need {count} `peaks`, got {len(self.peaks)}")
        if len(self.until) != count - 1:
            raise ValueError(f"{count} parts need {count - 1} boundaries in `until`, got {len(self.until)}")
        bounds = [0.0, *self.until, self.length]
        # Equal ones are refused as well: a phase of no length cannot hold a shape.
        if any(begin >= end for begin, end in pairwise(bounds)):
            raise ValueError(f"`until` must rise strictly from 0 to length {self.length:g}, got {list(self.until)}")
        for index, part in enumerate(self.parts):
            if part.over != "budget":
                raise ValueError(
                    f"parts[{index}] counts {part.over}, but a part's lengths are shares of its phase: leave its "
                    "`over` at 'budget' and set `over` of the phases"
                )
        return self

    def value(self, x: float) -> float:
        """v(x) as above; ``x`` counts what ``over`` says: a share of the budget, or steps, tokens or seconds."""
        # As many boundaries passed, as many phases gone; >= begins a phase exactly at its boundary.
        phase = sum(x >= boundary for boundary in self.until)
        begin = self.until[phase - 1] if phase else 0.0
        end = self.until[phase] if phase < len(self.until) else self.length
        # A run that outlives the phases stays at the end of the last one.
        within: float = self.parts[phase].value(min(1.0, (x - begin) / (end - begin)))
        return self.peaks[phase] * within

    def extremes(self) -> tuple[float, float]:
        """(lowest, highest) over all phases."""
        reached = [peak * end for peak, part in zip(self.peaks, self.parts, strict=True) for end in part.extremes()]
        return min(reached), max(reached)

    def handles(self) -> tuple[Handle, ...]:
        """Those of the parts, and the ends of the phases."""
        bounds = [0.0, *self.until, self.length]
        found: list[Handle] = []
        for index, part in enumerate(self.parts):
            begin, end = bounds[index : index + 2]
            last = index == len(self.parts) - 1
            # Strictly between its neighbours, as a phase of no length cannot hold a shape.
            low = begin + NARROWEST * (end - begin)
            high = None if last else bounds[index + 2] - NARROWEST * (bounds[index + 2] - end)
            boundary = pull("length", low=low) if last else pull("until", index, low=low, high=high)
            found += _handles_of_phase(part, index, self.peaks[index], (begin, end), boundary)
        return tuple(found)


def _handles_of_phase(
    part: Schedule, index: int, peak: float, reach: tuple[float, float], end: Pull
) -> Iterator[Handle]:
    """The handles of one phase, from those of its part.

    The part's own lengths are stretched over the phase. Its highest places move the phase's peak, since two numbers
    for one height would be one too many; all others move the part.

    Args:
        reach: where it begins and ends.
        end: what moves its end.
    """
    inner, name = part.handles(), f"phase {index + 1}"
    top = max((abs(handle.at[1]) for handle in inner), default=0.0)
    begin, length = reach[0], reach[1] - reach[0]
    for handle in inner:
        x, y = handle.x and _within(handle.x, index, begin, length, 1.0), None
        if handle.y is not None and abs(handle.at[1]) == top > 0:
            y = Pull(("peaks", index), scale=1.0 / handle.at[1])
        elif handle.y is not None and peak:
            y = _within(handle.y, index, 0.0, peak, None)
        at = begin + length * handle.at[0], peak * handle.at[1]
        yield Handle(f"{name}, {handle.name}", at, end if handle.at[0] == 1.0 else x, y)
    if not any(handle.at[0] == 1.0 for handle in inner):
        yield Handle(f"{name}, end", (reach[1], peak * part.value(1.0)), end)


def _within(inner: Pull, index: int, begin: float, length: float, most: float | None) -> Pull:
    """A part's pull in the units of the phases: places are stretched by ``length`` and begin at ``begin``."""

    def stretched(place: float | None) -> float | None:
        return None if place is None else begin + length * place

    # A part may outlive its phase (its length is above 1), its handles may not: they would lie on the next phase.
    high = most if inner.high is None or most is None else min(inner.high, most)
    return Pull(
        ("parts", index, *inner.path),
        stretched(inner.low),
        stretched(high),
        begin + length * inner.origin,
        inner.scale / length,
    )
