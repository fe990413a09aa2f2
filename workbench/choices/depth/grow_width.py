"""Growth in width: train a narrow model, then go on with a wider one that computes the same function."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

from workbench.choices.choice import Problem, knob
from workbench.choices.depth.plan import Depth, LayerPlan, Transition
from workbench.choices.progress import Progress


class GrowWidth(Depth):
    """Train a narrower model first, then widen it once without changing its function.

    Stage 1: width D / k, heads H / k, inner width F / k; stage 2: D, H and F. At the boundary every axis is filled with
    copies; a product (O, I) that reads k copies of an input divides its weights between them, unevenly, so that the
    copies can part. Logits (N, V) stay what they were, to rounding. The head width E = D / H does not change.

    Source: Chen et al. 2016 (Net2Net, arXiv 1511.05641); Chen et al. 2022 (bert2BERT, arXiv 2110.07143), which starts
    from a finished small model, where we train the small one as the first stage of the same run.
    """

    kind: Literal["grow_width"] = "grow_width"
    factor: int = knob(2, "how many times narrower the first stage is", ge=2, le=16)
    at: float = knob(0.4, "share of the budget that the narrow model gets", gt=0, lt=1)
    what: Literal["width", "ffn"] = knob(
        "width", "what starts narrower: the whole model with its heads, or only the feed-forward inner width"
    )
    state: Literal["reset", "copy"] = knob(
        "reset", "optimizer state when the model widens: reset, or moments copied like the weights"
    )
    rewarm: float = knob(0.05, "share of the wide stage over which the learning rate warms up again", ge=0, lt=1)

    def starts(self) -> tuple[float, ...]:
        """The narrow stage from 0, the wide one from ``at``."""
        return (0.0, self.at)

    def plan(self, layers: int, progress: Progress, seed: int, micro_step: int = 0) -> LayerPlan:
        """Return all ``layers`` run and train, tuples of shape (layers,); in the wide stage they show as grown."""
        return LayerPlan.full(layers, origin=("grown" if self.stage(layers, progress) else "",) * layers)

    def transition(self, layers: int, stage: int) -> Transition:
        """No layer appears; the optimizer's state is reset or repeated as ``state`` says."""
        return Transition(layers, state=self.state)

    def architecture_at(self, architecture: Any, stage: int) -> Any:
        """Return the recipe's own in the wide stage; before, a ``factor``-th of its width, heads and inner width."""
        if stage:
            return architecture
        inner = {"ffn_width": max(8, architecture.inner_width // self.factor)}
        if self.what == "ffn":
            return architecture.model_copy(update=inner)
        narrow = {"width": architecture.width // self.factor, "heads": max(1, architecture.heads // self.factor)}
        return architecture.model_copy(update=narrow | (inner if architecture.ffn_width is not None else {}))

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse architectures whose function cannot be kept, and widths and heads that the factor does not divide."""
        yield from super().problems(recipe)
        architecture = recipe.architecture
        if self.what == "ffn" and not architecture.ffn_widens():
            yield Problem(
                "depth.what", f"'ffn' cannot widen {architecture.kind}, whose layers are not ours; use 'pre_ln'"
            )
        if self.what == "width" and not architecture.widens():
            positions = getattr(architecture, "positions", "")
            reason = (
                f"positions '{positions}' are constants of the number of heads or of the width, so a wider model "
                "computes another function; use 'rope' or 'learned'"
                if positions in ("alibi", "sinusoidal")
                else f"{architecture.kind} cannot be widened as it is; use 'pre_ln' with its final norm"
            )
            yield Problem("depth.kind", reason)
        numbers = {"width": architecture.width, "heads": architecture.heads} if self.what == "width" else {}
        for name, number in {**numbers, "ffn_width": architecture.inner_width}.items():
            if number % self.factor:
                legal = [factor for factor in range(2, 17) if number % factor == 0]
                yield Problem(
                    "depth.factor",
                    f"{self.factor} does not divide architecture.{name} {number}; use one of {legal}"
                    if legal
                    else f"{self.factor} does not divide architecture.{name} {number}, which no factor does; change it",
                )
