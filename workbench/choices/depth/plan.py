"""LayerPlan: what every layer does in one micro-batch. The only thing the training loop asks of a depth method.

The same object is streamed by telemetry, drawn by the layer-activity plot, counted by the FLOP formula and read
by the forecast. Layers are 0-based here; papers' formulas with l = 1..L say so where they are used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from workbench.choices.choice import Choice
from workbench.choices.progress import Progress

STATES = ("running", "dropped", "frozen", "absent")
"""What a layer does, in the order of the codes that telemetry stores."""


@dataclass(frozen=True)
class LayerPlan:
    """One decision for all layers of the model, for one micro-batch; its tuples have shape (layers,).

    Attributes:
        runs: does the layer compute; a layer that does not run costs nothing, its output is its input.
        scale: factor on the layer's residual branches (1/p for a layer that runs with probability p).
        trains: does the layer get gradients; a layer that runs but does not train costs a forward pass only.
        keep: probability with which the layer was to run (1 where nothing is random).
        total: layers the finished model will have; those beyond ``len(runs)`` do not exist yet.
    """

    runs: tuple[bool, ...]
    scale: tuple[float, ...]
    trains: tuple[bool, ...]
    keep: tuple[float, ...]
    total: int

    def __post_init__(self) -> None:
        # An assert: plans come from our own code or from a plug-in, never from what a user typed.
        now = len(self.runs)
        assert now == len(self.scale) == len(self.trains) == len(self.keep) <= self.total, (
            "one entry per existing layer"
        )

    @classmethod
    def full(cls, layers: int) -> LayerPlan:
        """Every layer runs, trains and has scale 1: four tuples of shape (layers,)."""
        return cls((True,) * layers, (1.0,) * layers, (True,) * layers, (1.0,) * layers, layers)

    @property
    def layers(self) -> int:
        """Layers that exist now."""
        return len(self.runs)

    @property
    def states(self) -> tuple[int, ...]:
        """Index into :data:`STATES` for every layer of the finished model, shape (total,)."""
        # A layer that does not run gets no gradient, whatever `trains` says: dropped outranks frozen.
        now = tuple(1 if not run else (0 if train else 2) for run, train in zip(self.runs, self.trains, strict=True))
        return now + (3,) * (self.total - self.layers)


class Depth(Choice):
    """Base of the methods that decide which layers run, train and exist.

    A depth method is pure data: ``plan`` must depend on nothing but its arguments, so that every rank, a resumed
    run, the forecast and the plots see the same decision. A plan in which no layer runs is legal: embedding, final
    norm and head still compute and train.
    """

    axis: ClassVar[str] = "depth"

    def plan(self, layers: int, progress: Progress, seed: int, micro_step: int = 0) -> LayerPlan:
        """The decision for one micro-batch.

        Args:
            layers: layers of the finished model.
            progress: where the run stands before this step, in steps, tokens and seconds.
            seed: the recipe's seed.
            micro_step: index of the micro-batch within the step (gradient accumulation).

        Returns:
            a plan whose tuples have one entry per existing layer.
        """
        raise TypeError(f"{type(self).__name__} defines no plan(...)")
