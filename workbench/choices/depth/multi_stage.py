"""MSLT: grow upwards, train only what is new, then everything together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from workbench.choices.choice import Problem, knob
from workbench.choices.depth.plan import Depth, LayerPlan, Transition
from workbench.choices.depth.staging import starts_of
from workbench.choices.progress import Progress


class MultiStage(Depth):
    """MSLT, or stacking 2.0: each stage adds layers on top and trains only those; the last trains all.

    In stage k the layers below the new ones run forward only: no backward pass, no gradient buffer, no optimizer state
    touched. With d new layers a step costs k d forward and d backward layers, each on (B, T, D). New layers start as
    copies of the top ones.

    Source: Yang et al. 2020 (arXiv 2011.13635), sections 1 and 3. Stage lengths are our own choice: long while a step
    is cheap, so that 12 layers in four stages take 47% of the full model's layer FLOPs.
    """

    kind: Literal["multi_stage"] = "multi_stage"
    shares: tuple[float, ...] = knob((6, 5, 3, 2), "relative length of each growing stage", min_length=1)
    joint: float = knob(0.2, "share of the budget of the last stage, in which all layers train", ge=0, lt=1)
    layers_added: tuple[int, ...] | None = knob(
        None, "layers that each growing stage adds; empty means equal parts", unit="layers"
    )
    initial: Literal["copy", "zero_output", "random"] = knob(
        "copy", "added layers: copies of the top ones, fresh ones that start as the identity (pre-norm only), or fresh"
    )
    state: Literal["reset", "copy"] = knob(
        "reset", "optimizer state of added layers: none, or copied from the layers they copy"
    )
    embedding: Literal["trains", "frozen"] = knob(
        "trains", "embedding while layers are frozen: trained only through a tied head, or frozen"
    )
    head: Literal["trains", "frozen"] = knob("trains", "whether final norm and head train while layers are frozen")
    rewarm: float = knob(0.05, "share of a stage over which the learning rate warms up again", ge=0, lt=1)

    def starts(self) -> tuple[float, ...]:
        """Return share of the budget at which each stage begins, the joint one last."""
        growing = [(1 - self.joint) * start for start in starts_of(self.shares)]
        return (*growing, 1 - self.joint) if self.joint else tuple(growing)

    def layers_at(self, layers: int, stage: int) -> int:
        """Sum of what the stages up to this one have added to a model that will have ``layers``."""
        stages = len(self.shares)
        if stage >= stages - 1:
            return layers
        if self.layers_added is not None:
            return min(layers, sum(self.layers_added[: stage + 1]))
        # Rounded up where it does not come out even, which `problems` refuses: a plan must always be whole.
        return -(-layers * (stage + 1) // stages)

    def plan(self, layers: int, progress: Progress, seed: int, micro_step: int = 0) -> LayerPlan:
        """All existing layers run, those of this stage train; tuples of shape (existing layers,)."""
        stage = self.stage(layers, progress)
        now = self.layers_at(layers, stage)
        growing = 0 < stage < len(self.shares)
        below = self.layers_at(layers, stage - 1) if growing else 0
        new = "copied" if self.initial == "copy" else "grown"
        return LayerPlan.full(
            now,
            layers,
            trains=tuple(layer >= below for layer in range(now)),
            origin=tuple(new if growing and layer >= below else "" for layer in range(now)),
            embedding=not growing or self.embedding == "trains",
            head=not growing or self.head == "trains",
        )

    def transition(self, layers: int, stage: int) -> Transition:
        """Layers that appear copy the top ones below them, in their order; nothing appears in the joint stage."""
        before, now = self.layers_at(layers, stage - 1), self.layers_at(layers, stage)
        if self.initial != "copy":
            return Transition(before, (None,) * (now - before), self.initial == "zero_output")
        # As many of the top layers as are needed; a shallower model is copied over and over.
        top = min(before, now - before)
        sources = tuple(before - top + layer % top for layer in range(now - before))
        return Transition(before, sources, state="copy" if self.state == "copy" else "keep")

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse stages that do not add up to the model's layers, empty ones, and knobs that would have no effect."""
        layers, stages = recipe.architecture.layers, len(self.shares)
        yield from super().problems(recipe)
        if self.layers_added is None:
            if layers % stages:
                legal = [n for n in range(1, min(layers, 12) + 1) if layers % n == 0]
                yield Problem(
                    "depth.shares",
                    f"{layers} layers do not split into {stages} equal parts; use a number of stages out of {legal}, "
                    f"architecture.layers {max(stages, round(layers / stages) * stages)}, or say depth.layers_added",
                )
        elif len(self.layers_added) != stages or sum(self.layers_added) != layers or min(self.layers_added) < 1:
            yield Problem(
                "depth.layers_added",
                f"{list(self.layers_added)} must be {stages} numbers, one for each of depth.shares, all at least 1, "
                f"that add up to architecture.layers {layers}",
            )
        if self.state == "copy" and self.initial != "copy":
            yield Problem(
                "depth.state", f"'copy' needs layers to copy from, and depth.initial is '{self.initial}'; use 'reset'"
            )
