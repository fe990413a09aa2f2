"""Schedules one after the other, each with a height and a share of the run of its own."""

from __future__ import annotations

from itertools import pairwise
from typing import ClassVar, Literal

from pydantic import model_validator

from workbench.choices.choice import knob, one_of
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
        """Return v(x) as above; ``x`` counts what ``over`` says: a share of the budget, or steps, tokens or seconds."""
        # As many boundaries passed, as many phases gone; >= begins a phase exactly at its boundary.
        phase = sum(x >= boundary for boundary in self.until)
        begin = self.until[phase - 1] if phase else 0.0
        end = self.until[phase] if phase < len(self.until) else self.length
        # A run that outlives the phases stays at the end of the last one.
        within: float = self.parts[phase].value(min(1.0, (x - begin) / (end - begin)))
        return self.peaks[phase] * within

    def extremes(self) -> tuple[float, float]:
        """Return (lowest, highest) over all phases."""
        reached = [peak * end for peak, part in zip(self.peaks, self.parts, strict=True) for end in part.extremes()]
        return min(reached), max(reached)
