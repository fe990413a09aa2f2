"""A step's two passes as one graph each, instead of one per block: compiled, exported or captured as a whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from workbench.base.errors import RecipeError
from workbench.choices.architectures.stack import Stack
from workbench.choices.choice import Problem
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.full import Full
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.objective import Labelled, Loss, TrainingModel
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.progress import Progress
from workbench.choices.schedules.schedule import Schedule

# Shape legend: B rows, T positions of a row, N labelled slots.


class ScoredRows(nn.Module):
    """The content of one graph: rows of tokens as the backbone sees them -> nats, hits, RMS of each layer's output.

    Corruption stays outside: it draws by counters in 64-bit integers, which is not worth a graph.

    Args:
        model: shared, not copied.
        plan: in force whenever this is called.
    """

    def __init__(self, model: TokenPrediction, plan: LayerPlan) -> None:
        super().__init__()
        self.model, self.plan = model, plan

    def forward(
        self, tokens_BT: Tensor, positions_BT: Tensor, documents_BT: Tensor, labels_N: Tensor, weight_N: Tensor,
        index_N: Tensor | None = None, causal: bool | Tensor | None = None,
    ) -> tuple[Tensor, ...]:  # fmt: skip
        """Return summed nats and right predictions, 0-d each, then one 0-d RMS per layer."""
        backbone = self.model.backbone
        taps: list[Tensor] = []
        backbone.taps = taps
        # Samples by number are for corruption, which is done.
        batch = Batch(tokens_BT, positions_BT, documents_BT, tokens_BT[:, 0])
        seen = Labelled(tokens_BT, index_N, labels_N, weight_N, causal)
        scores = self.model.score(self.model.states(seen, batch, self.plan), labels_N, weight_N)
        backbone.taps = None
        return (*scores, *taps)


def inputs_of(seen: Labelled, batch: Batch) -> list[Any]:
    """Return the inputs of :class:`ScoredRows`: rows of corruption's choice take the place of the batch's own."""
    inputs = [seen.tokens_BT, batch.positions_BT, batch.documents_BT, seen.labels_N, seen.weight_N]
    if seen.causal is not None:
        return [*inputs, seen.index_N, seen.causal]
    return inputs if seen.index_N is None else [*inputs, seen.index_N]


class WholeStep:
    """Compiles :class:`ScoredRows` of models, one graph for the forward pass of each and one for its backward pass.

    Args:
        captured: as CUDA graphs, which the device replays by itself.
    """

    def __init__(self, captured: bool) -> None:
        self._captured = captured
        self._regions: dict[TrainingModel, Callable[..., tuple[Tensor, ...]]] = {}

    def add(self, model: TrainingModel) -> None:
        """Train ``model`` in one graph from now on.

        Raises:
            RecipeError: it is more than a stack of layers, a head and a mean over labels.
        """
        if not (isinstance(model, TokenPrediction) and isinstance(model.backbone, Stack)):
            raise RecipeError(f"execution.compile_scope: a {type(model).__name__} has no whole step; use 'blocks'")
        plan = LayerPlan.full(len(model.backbone.blocks))
        # Before the graph is made: switching gradients on is no part of it.
        model.backbone.begin(plan)
        options = {"mode": "reduce-overhead"} if self._captured else {}
        self._regions[model] = torch.compile(ScoredRows(model, plan), **options)  # type: ignore[call-overload]
        self.next_step()

    def __contains__(self, model: TrainingModel) -> bool:
        return model in self._regions

    def forward(self, model: TrainingModel, batch: Batch, progress: Progress) -> Loss:
        """Return loss of rows (B, T), as ``model`` itself gives it, with every layer running."""
        assert isinstance(model, TokenPrediction)
        seen, batch = model.inputs(batch, progress)
        taps = model.backbone.taps
        try:
            scores = self._regions[model](*inputs_of(seen, batch))
        finally:
            model.backbone.taps = taps
        if self._captured:
            # The graph's next replay writes over what it returned.
            scores = tuple(score.clone() for score in scores)
        nats, hits, *rms = scores
        if taps is not None:
            taps.extend(rms)
        return model.loss_of(nats, hits)

    def next_step(self) -> None:
        """The step's gradients are used up: what a graph returned before may be written over."""
        if self._captured:
            torch.compiler.cudagraph_mark_step_begin()


def problems(recipe: Any, scope: str) -> Iterator[Problem]:
    """Refuse recipes that one graph for all layers, or one capture for all steps, cannot carry out."""
    path, way_out = "execution.compile_scope", "use 'blocks'"
    if not isinstance(recipe.depth, Full):
        yield Problem(
            path,
            f"'{scope}' compiles all layers as one, and depth '{recipe.depth.kind}' changes which run, train or exist; "
            f"{way_out}, or depth 'full'",
        )
    if recipe.objective.added_parts:
        added = " and ".join(recipe.objective.added_parts)
        yield Problem(path, f"'{scope}' compiles one head and one loss, and the objective adds {added}; {way_out}")
    if recipe.architecture.keeps_notes():
        yield Problem(path, f"'{scope}' compiles no notes of an architecture; {way_out}, or architecture.notes 'none'")
    if words := getattr(recipe.objective, "sampled_words", 0):
        yield Problem(
            path, f"'{scope}' compiles a head over all words, and objective.sampled_words is {words}; {way_out}"
        )
    if scope != "graphs":
        return
    if moving := sorted(_moving(recipe)):
        yield Problem(
            path,
            f"'graphs' are captured for one shape, and {' and '.join(moving)} would change it during the run; "
            f"{way_out} or 'step', or a constant",
        )


def _moving(recipe: Any) -> Iterator[str]:
    """Yield knobs that change shapes from step to step."""
    data = recipe.data
    # By what they are rather than by their values: those of tokens or seconds say nothing before the run.
    for axis, name in ((recipe.objective, "mask_rate"), (data, "batch_size"), (data, "sequence_length")):
        if isinstance(getattr(axis, name, None), Schedule):
            yield f"{axis.axis}.{name}"
    if data.batch_rule.kind != "as_scheduled":
        yield "data.batch_rule"
    if recipe.execution.padding == "kept":
        yield "execution.padding"
