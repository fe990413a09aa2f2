"""Progressive stacking: train a shallow model, double it by copying itself on top, train on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from workbench.base.text import many
from workbench.choices.choice import Problem, knob
from workbench.choices.depth.plan import Depth, LayerPlan, Transition
from workbench.choices.depth.staging import starts_of
from workbench.choices.progress import Progress


class Stacking(Depth):
    """Progressive stacking (StackBERT): the depth doubles from stage to stage, layer i is copied to i + n.

    n = L / 2^(stages - 1 - k) layers in stage k = 0, 1, ...; at its end, layer n + i takes the weights of layer i
    (tensors of any shape, bit for bit). All layers that exist train. The learning rate runs on as one line.

    Source: Gong et al., ICML 2019, algorithm 1: of 400 thousand steps, 50 at L/4, 70 at L/2, 280 at L layers.
    """

    kind: Literal["stacking"] = "stacking"
    shares: tuple[float, ...] = knob(
        (50, 70, 280), "relative length of each stage; each doubles the depth", min_length=1
    )
    initial: Literal["copy", "zero_output"] = knob(
        "copy", "added layers: plain copies, or copies that start as the identity (pre-norm only)"
    )
    state: Literal["reset", "copy"] = knob(
        "reset", "optimizer state at a doubling: all reset, or kept and copied along with the layers"
    )
    rewarm: float = knob(0.0, "share of a stage over which the learning rate warms up again", ge=0, lt=1)

    def starts(self) -> tuple[float, ...]:
        """Return share of the budget at which each depth begins."""
        return starts_of(self.shares)

    def layers_at(self, layers: int, stage: int) -> int:
        """Return L / 2^(stages - 1 - stage) of the ``layers`` L of the finished model, at least one."""
        return max(1, layers >> max(0, len(self.shares) - 1 - stage))

    def plan(self, layers: int, progress: Progress, seed: int, micro_step: int = 0) -> LayerPlan:
        """All that exist run and train, tuples of shape (existing layers,); the upper half is new in its stage."""
        stage = self.stage(layers, progress)
        now, before = self.layers_at(layers, stage), self.layers_at(layers, stage - 1) if stage else 0
        new = "copied" if self.initial == "copy" else "grown"
        origin = tuple(new if stage and layer >= before else "" for layer in range(now))
        return LayerPlan.full(now, layers, origin=origin)

    def transition(self, layers: int, stage: int) -> Transition:
        """Layer n + i is made of layer i; the optimizer's state is reset or copied as ``state`` says."""
        before, now = self.layers_at(layers, stage - 1), self.layers_at(layers, stage)
        return Transition(before, tuple(range(now - before)), self.initial == "zero_output", self.state)

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse a depth that does not halve often enough, empty stages,
        and silent layers that are not the identity.
        """
        layers, halvings = recipe.architecture.layers, len(self.shares) - 1
        yield from super().problems(recipe)
        if layers % (1 << halvings):
            unit = 1 << halvings
            near = max(unit, round(layers / unit) * unit)
            most = (layers & -layers).bit_length()
            yield Problem(
                "depth.shares",
                f"{layers} layers cannot be halved {halvings} times for {halvings + 1} stages; use architecture.layers "
                f"{near}, or at most {many(most, 'stage')}",
            )
