"""Seconds of kernels, timed one by one in forward and backward passes of small real models."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from workbench.choices.data.tokens import PreparedData, TokenStore, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.hardware import Mode
from workbench.forecasting.stopwatch import Reading, Stopwatch, lines
from workbench.ops.timing import Timing, clock_of, measure, wait_for
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import assemble
from workbench.training.loop import Training

VOCABULARY = Vocabulary(2048, 2048, 1, 2, 3, 0, 4)
_MODELS: tuple[dict[str, Any], ...] = (
    # Next to nothing but calls.
    {"architecture": {"layers": 3, "width": 32, "heads": 1}, "data": {"sequence_length": 32, "batch_size": 4}},
    {"architecture": {"layers": 3, "width": 128, "heads": 2}, "data": {"sequence_length": 64, "batch_size": 16}},
    # Products.
    {"architecture": {"layers": 2, "width": 512, "heads": 8}, "data": {"sequence_length": 64, "batch_size": 6}},
    # Attention, in the other implementation, over short rows and long ones.
    {"architecture": {"layers": 2, "width": 64, "heads": 2}, "data": {"sequence_length": 64, "batch_size": 8},
     "execution": {"attention": "sdpa"}},
    {"architecture": {"layers": 2, "width": 128, "heads": 2}, "data": {"sequence_length": 256, "batch_size": 4},
     "execution": {"attention": "sdpa"}},
    # BERT's own parts.
    {"architecture": {"kind": "post_ln", "layers": 2, "width": 192, "heads": 3, "dropout": 0.1},
     "data": {"sequence_length": 128, "batch_size": 4}},
    # A decoder with gates, norms of the other kind, long rows, and labels at every position.
    {"architecture": {"layers": 2, "width": 192, "heads": 6, "norm": "layer_norm", "ffn": "swiglu", "bias": True,
                      "tied": False},
     "data": {"sequence_length": 256, "batch_size": 2}, "objective": "causal"},
)  # fmt: skip


def models(mode: Mode) -> list[Recipe]:
    """Return the recipes of the models that are trained: dominated by calls, by moving numbers, by products; eager."""
    execution = {
        "device": mode.device, "precision": mode.precision, "compile": False, "threads": mode.threads,
        "attention": "plain",
    }  # fmt: skip
    base = Recipe(budget="1000 steps").with_(execution=execution, optimizer={"kind": "adamw"})
    return [base.with_(**model) for model in _MODELS]


class SmallModel(contextlib.AbstractContextManager["SmallModel"]):
    """A model on random text."""

    def __init__(self, recipe: Recipe) -> None:
        self._training = Training(recipe, assemble(recipe, _random_text()))
        self._device = self._training.device
        self._clock = clock_of(self._device)

    def __exit__(self, *_: object) -> None:
        self._training.close()

    def pass_seconds(self) -> list[float]:
        """Return every kernel of a forward and backward pass, in the order in which they run."""
        assembled, training = self._training.assembled, self._training
        batch = training.batches.next(0, training.batch_size.shape(training.progress)).parts[0].to(self._device)
        with Stopwatch(self._clock, lambda: wait_for(self._device)) as watch:
            plan = LayerPlan.full(assembled.layers)
            loss = training.engine.forward(assembled.model, batch, plan, training.progress)
            loss.over(dict.fromkeys(loss.parts, 1)).backward()
        assembled.model.zero_grad(set_to_none=True)
        self.operations = [reading.operation for reading in watch.readings]
        return [reading.seconds for reading in watch.readings]

    def readings(self, timing: Timing) -> list[Reading]:
        """Return the readings of :meth:`pass_seconds`, by kernel."""
        return [Reading(*pair) for pair in zip(self.operations, timing.parts, strict=True)]


def kernel_rates(mode: Mode) -> tuple[dict[str, tuple[float, ...]], float]:
    """Return rates by the key of an operation (see :func:`lines`),
    and by how much the halves of the rounds disagreed.
    """
    with contextlib.ExitStack() as stack:
        trained = {str(i): stack.enter_context(SmallModel(recipe)) for i, recipe in enumerate(models(mode))}
        passes = measure({name: small.pass_seconds for name, small in trained.items()})
        readings = [reading for name, small in trained.items() for reading in small.readings(passes[name])]
    return lines(readings), round(max(timing.disagreement for timing in passes.values()), 4)


def _random_text() -> PreparedData:
    """Return documents of 100 random tokens: a model's speed does not depend on its text."""
    drawn = np.random.default_rng(0).integers(5, VOCABULARY.used, (600, 100)).astype(np.uint16)
    drawn[:, 0], drawn[:, -1] = VOCABULARY.cls, VOCABULARY.sep
    store = TokenStore(drawn.reshape(-1), np.arange(0, drawn.size + 1, 100))
    counts_V = np.bincount(store.ids_N, minlength=VOCABULARY.size)
    return PreparedData(store, store, VOCABULARY, "", counts_V)
