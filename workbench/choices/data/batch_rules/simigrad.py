"""SimiGrad: as large a batch as it takes for its two halves to agree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from workbench.choices.choice import Problem, knob
from workbench.choices.data.batch_rules.batch_rule import BatchRule
from workbench.choices.schedules.schedule import Schedule


class SimiGrad(BatchRule):
    """Grows the batch while the gradients of its two halves disagree, shrinks it while they agree too well.

    cos(g_1, g_2) below ``target``: rows times ``grow``; above it: rows times ``shrink``; always within ``lowest`` and
    ``highest``. ``data.batch_size`` is where it begins.

    Source: Qin et al. 2021, SimiGrad (NeurIPS 2021). There every step compares, since its data-parallel workers hold
    halves anyway; here every so many steps, since it takes a copy of the gradients.
    """

    follows_schedule: ClassVar[bool] = False
    kind: Literal["simigrad"] = "simigrad"
    target: float = knob(0.8, "target for the cosine of the two halves' gradients", gt=0, lt=1)
    grow: float = knob(1.1, "factor on the rows while the cosine is below the target", gt=1, le=4)
    shrink: float = knob(0.9, "factor on the rows while the cosine is above the target", gt=0, lt=1)
    every: int = knob(5, "steps between comparisons", unit="steps", ge=1, le=100_000)
    lowest: int = knob(2, "the batch never gets smaller", unit="rows", ge=2, le=1 << 20, scale="log")
    highest: int = knob(1024, "the batch never gets larger", unit="rows", ge=2, le=1 << 20, scale="log")

    def rows(self, scheduled: int, adapted: float | None) -> float:
        """Return the rows that the comparisons so far lead to; ``scheduled`` until the first."""
        return float(scheduled) if adapted is None else adapted

    def compares(self, step: int) -> bool:
        """Return whether ``step``, counted from 0, is one of every ``every`` steps, the first included."""
        return step % self.every == 0

    def adapt(self, rows: float, cosine: float) -> float:
        """Return rows from the next step on; not rounded, so that small batches can grow by less than a row at a
        time.
        """
        factor = self.grow if cosine < self.target else self.shrink
        return min(float(self.highest), max(float(self.lowest), rows * factor))

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse a batch that is scheduled as well, begins out of bounds, or cannot be cut into equal halves."""
        path, start, micro = "data.batch_rule", recipe.data.batch_size, recipe.execution.micro_batch_size
        if isinstance(start, Schedule):
            yield Problem(
                "data.batch_size", "simigrad moves the batch itself: give a number to begin with, or use as_scheduled"
            )
            return
        if self.lowest > self.highest:
            yield Problem(f"{path}.lowest", f"{self.lowest} rows exceed {path}.highest {self.highest}")
        elif not self.lowest <= start <= self.highest:
            yield Problem(
                "data.batch_size",
                f"simigrad begins with {start} rows, which must lie within {path}.lowest {self.lowest} and "
                f"{path}.highest {self.highest}",
            )
        if isinstance(micro, int) and micro % 2:
            yield Problem(
                "execution.micro_batch_size",
                f"{micro} rows have no equal halves for simigrad to compare; use an even number",
            )
