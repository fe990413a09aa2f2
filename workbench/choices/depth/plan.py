"""LayerPlan: what every layer does in one micro-batch. The only thing the training loop asks of a depth method.

The same object is streamed by telemetry, drawn by the layer-activity plot, counted by the FLOP formula and read
by the forecast. Layers are 0-based here; papers' formulas with l = 1..L say so where they are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from workbench.choices.choice import Choice, Problem
from workbench.choices.progress import Progress
from workbench.telemetry.quantities import STATES

ORIGINS = ("", "grown", "copied")
"""Origins of a layer, during the stage in which it appeared; nothing from the next stage on."""


@dataclass(frozen=True)
class LayerPlan:
    """One decision for all layers of the model, for one micro-batch; its tuples have shape (layers,).

    Attributes:
        runs: does the layer compute; a layer that does not run costs nothing, its output is its input.
        scale: factor on the layer's residual branches (1/p for a layer that runs with probability p).
        trains: does the layer get gradients; a layer that runs but does not train costs a forward pass only.
        keep: probability with which the layer was to run (1 where nothing is random).
        total: layers the finished model will have; those beyond ``len(runs)`` do not exist yet.
        origin: one of :data:`ORIGINS`: set for a layer that appeared when the present stage began.
        embedding: do the token matrix and all else below the first layer get gradients; where the first layers are
            frozen only a tied head gives them any.
        head: do the final norm and the objective's head get gradients (a tied matrix belongs to the embedding).
    """

    runs: tuple[bool, ...]
    scale: tuple[float, ...]
    trains: tuple[bool, ...]
    keep: tuple[float, ...]
    total: int
    origin: tuple[str, ...] = ()
    embedding: bool = True
    head: bool = True

    def __post_init__(self) -> None:
        now = len(self.runs)
        if not self.origin:
            object.__setattr__(self, "origin", ("",) * now)
        # An assert: plans come from our own code or from a plug-in, never from what a user typed.
        assert now == len(self.scale) == len(self.trains) == len(self.keep) == len(self.origin) <= self.total, (
            "one entry per existing layer"
        )

    @classmethod
    def full(cls, layers: int, total: int | None = None, **changes: Any) -> LayerPlan:
        """Every layer that exists runs, trains and has scale 1: tuples of shape (layers,).

        Args:
            layers: that exist now.
            total: of the finished model; none is missing when left out.
            **changes: attributes that differ from that.
        """
        every, all_run = (1.0,) * layers, (True,) * layers
        return replace(cls(all_run, every, all_run, every, total or layers), **changes)

    @property
    def layers(self) -> int:
        """Layers that exist now."""
        return len(self.runs)

    @property
    def states(self) -> tuple[int, ...]:
        """Index into :data:`STATES` for every layer of the finished model, shape (total,)."""
        # A layer that does not run gets no gradient, whatever `trains` says: dropped outranks frozen, and both outrank
        # where the layer comes from.
        now = [
            "dropped" if not run else "frozen" if not train else origin or "running"
            for run, train, origin in zip(self.runs, self.trains, self.origin, strict=True)
        ]
        return tuple(map(STATES.index, [*now, *["absent"] * (self.total - self.layers)]))


def gates(stream: int, seed: int, step: int, micro_step: int, layers: int) -> list[float]:
    """Return draws in [0, 1), one per layer: the same on every rank and in every resumed run;
    streams are independent.
    """
    generator = np.random.Generator(np.random.Philox(key=[seed, step], counter=[0, 0, stream, micro_step]))
    # A list, because numpy's own numbers and truth values do not go into JSON.
    return generator.random(layers).tolist()  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Transition:
    """Describe the change of model and optimizer, made once, when a stage begins.

    Attributes:
        first: index of the first layer that appears; equal to the number of layers when none does.
        sources: per layer that appears, the layer whose weights it takes; None for a layer that keeps its fresh ones.
        silent: set the products into the residual stream to zero in the layers that appear, which makes a pre-norm
            layer the identity.
        state: what becomes of the optimizer's state: ``keep`` all there is (layers that appear have none), ``copy`` the
            sources' to the layers that appear, or ``reset`` all of it.
    """

    first: int
    sources: tuple[int | None, ...] = ()
    silent: bool = False
    state: Literal["keep", "copy", "reset"] = "keep"


class Depth(Choice):
    """Base of the methods that decide which layers run, train and exist.

    A depth method is pure data: ``plan`` must depend on nothing but its arguments, so that every rank, a resumed
    run, the forecast and the plots see the same decision. A plan in which no layer runs is legal: embedding, final
    norm and head still compute and train.

    A method may have stages (:meth:`starts`). When one begins, the trainer carries out its :meth:`transition` before
    the first step of that stage; all blocks of the finished model are allocated from the start.
    """

    axis: ClassVar[str] = "depth"
    provides: ClassVar[tuple[str, ...]] = ("plan",)

    @property
    def momentum_acts(self) -> bool:
        """Return True if layers (B, T, D) that train but ran in no micro-batch of a step take a step as on zero
        gradients (a knob ``dropped`` says so); False: weights and state rest, and steps do not count for them."""
        return getattr(self, "dropped", "rests") == "momentum"

    def plan(self, layers: int, progress: Progress, seed: int, micro_step: int = 0) -> LayerPlan:
        """Return the decision for one micro-batch: tuples with one entry per existing layer.

        Args:
            layers: layers of the finished model.
            progress: where the run stands before this step, in steps, tokens and seconds.
            micro_step: index of the micro-batch within the step (gradient accumulation).
        """
        raise NotImplementedError

    def starts(self) -> tuple[float, ...]:
        """Return share of the budget at which each stage begins; rises from 0. A method without stages has one."""
        return (0.0,)

    def stage(self, layers: int, progress: Progress) -> int:
        """Return index of the stage in force at ``progress`` (steps, tokens and seconds done);
        0 for a model of any depth.
        """
        # The epsilon: step 6 of 20 has passed a boundary at 0.3, whatever the rounding of either.
        return sum(progress.fraction >= start - 1e-9 for start in self.starts()[1:])

    def layers_at(self, layers: int, stage: int) -> int:
        """Return the number of the finished model's ``layers`` that exist in a stage."""
        return layers

    def transition(self, layers: int, stage: int) -> Transition:
        """Return the change of model and optimizer when ``stage`` (>= 1) of a model of ``layers`` layers begins."""
        return Transition(layers)

    def architecture_at(self, architecture: Any, stage: int) -> Any:
        """Return the architecture in force in a stage; the recipe's describes the finished model."""
        return architecture

    def rate_factor(self, layers: int, progress: Progress) -> float:
        """Return factor on the learning rate at ``progress`` (steps, tokens, seconds): below 1 while a stage warms up.

        Every stage but the first does so over the share of it that a knob ``rewarm`` says; without one, none does.
        """
        starts, stage = self.starts(), self.stage(layers, progress)
        ramp = getattr(self, "rewarm", 0.0) * ((*starts[1:], 1.0)[stage] - starts[stage])
        if stage == 0 or ramp <= 0:
            return 1.0
        return min(1.0, max(0.0, progress.fraction - starts[stage]) / ramp)

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Empty stages, and fresh layers that are silent where silence is not the identity on (B, T, D)."""
        shares = getattr(self, "shares", ())
        if any(share <= 0 for share in shares):
            yield Problem("depth.shares", f"every stage needs a positive length, got {list(shares)}")
        if getattr(self, "initial", "") == "zero_output" and not recipe.architecture.silent_is_identity():
            yield Problem(
                "depth.initial",
                f"'zero_output' layers are the identity in pre-norm blocks only: {recipe.architecture.kind} normalises "
                "what the silent layer passes on once more; use 'copy', or architecture.kind 'pre_ln'",
            )
