"""RaPTr: random sub-networks that grow from stage to stage until the whole model trains."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal

from workbench.choices.choice import Problem, knob
from workbench.choices.depth.plan import Depth, LayerPlan, gates
from workbench.choices.depth.staging import starts_of
from workbench.choices.progress import Progress

_STREAM = 0x525054
"""Word of the counter that keeps these draws apart from any other stream keyed by (seed, step)."""


def path_probability(length: float, layers: int, fixed: int) -> float:
    """Keep probability p of a layer that is not fixed on, so that ``length`` layers run on average.

    length = fixed + p (layers - fixed), clamped to p within [0, 1].

    Args:
        length: layers that are to run on average.
        fixed: layers that always run.
    """
    if layers <= fixed:
        return 1.0
    return min(1.0, max(0.0, (length - fixed) / (layers - fixed)))


class Raptr(Depth):
    """RaPTr: each micro-batch trains a random path through the layers; paths get longer in stages.

    x_{l+1} = x_l + G_l s f_l(x_l), G_l ~ Bernoulli(p) and 1 for the layers that are fixed on (x has shape (B, T, D),
    G_l is one number). p follows from the stage's path length; the last stage runs every layer. All layers run at
    evaluation.

    Source: Panigrahi et al., ICLR 2025 (arXiv 2402.05913), the (p, I)-sub-networks of section 2. We give lengths as
    shares of the layers, so that one recipe serves any depth.
    """

    kind: Literal["raptr"] = "raptr"
    lengths: tuple[float, ...] = knob(
        (0.5, 2 / 3, 5 / 6, 1.0),
        "share of the layers that run on average, by stage; the last should be 1",
        min_length=1,
    )
    shares: tuple[float, ...] = knob((1.0, 1.0, 1.0, 1.0), "relative length of each stage", min_length=1)
    first_on: bool = knob(True, "the first layer always runs")
    last_on: bool = knob(True, "the last layer always runs")
    scaling: Literal["none", "sqrt", "inverse"] = knob(
        "sqrt", "factor on a kept random layer's branches: 1, 1/sqrt(p) or 1/p"
    )
    dropped: Literal["rests", "momentum"] = knob(
        "rests", "what the optimizer does with a layer that never ran in a step: skip it, or step with zero gradients"
    )

    def starts(self) -> tuple[float, ...]:
        """Return share of the budget at which each path length begins."""
        return starts_of(self.shares)

    def plan(self, layers: int, progress: Progress, seed: int, micro_step: int = 0) -> LayerPlan:
        """Return one path for this micro-batch: runs, scale and keep of shape (layers,)."""
        fixed = self._fixed(layers)
        p = path_probability(self.length_at(layers, progress), layers, sum(fixed))
        # keep must stay positive: it divides. A layer with p = 0 is never drawn, since u < 0 never holds.
        keep = tuple(1.0 if always else max(p, 1e-6) for always in fixed)
        draw = gates(_STREAM, seed, progress.step, micro_step, layers)
        runs = tuple(always or u < p for u, always in zip(draw, fixed, strict=True))
        factor = {"none": 1.0, "sqrt": 1 / math.sqrt(max(p, 1e-6)), "inverse": 1 / max(p, 1e-6)}[self.scaling]
        scale = tuple(1.0 if always else factor for always in fixed)
        return LayerPlan(runs, scale, (True,) * layers, keep, layers)

    def length_at(self, layers: int, progress: Progress) -> float:
        """Return layers that run on average at ``progress`` (steps, tokens and seconds done)."""
        return self.lengths[min(self.stage(layers, progress), len(self.lengths) - 1)] * layers

    def scheduled_values(self, progress: Progress) -> dict[str, float]:
        """Return ``{"path": share}``: the share of the layers that run on average."""
        return {"path": self.length_at(1, progress)}

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse lists of different lengths, shares out of bounds,
        and paths shorter than the layers that are fixed on.
        """
        yield from super().problems(recipe)
        layers = recipe.architecture.layers
        if len(self.lengths) != len(self.shares):
            yield Problem(
                "depth.shares", f"{len(self.shares)} shares for {len(self.lengths)} path lengths; give one each"
            )
        if any(not 0 < length <= 1 for length in self.lengths):
            yield Problem("depth.lengths", f"shares of the layers lie within (0, 1], got {list(self.lengths)}")
        fixed = sum(self._fixed(layers))
        if min(self.lengths) * layers < fixed - 1e-9:
            yield Problem(
                "depth.lengths",
                f"{min(self.lengths):g} of {layers} layers are fewer than the {fixed} that always run; "
                f"use at least {math.ceil(fixed / layers * 1000) / 1000:g}, or switch first_on or last_on off",
            )

    def _fixed(self, layers: int) -> tuple[bool, ...]:
        return tuple(
            (layer == 0 and self.first_on) or (layer == layers - 1 and self.last_on) for layer in range(layers)
        )
