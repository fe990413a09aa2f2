"""Small real models in training: their kernels are timed one by one, their whole steps correct the sum."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from workbench.choices.data.tokens import PreparedData, TokenStore, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.engine import Mode
from workbench.forecasting.footprint import sizes
from workbench.forecasting.meta_tensors import ModelSpec
from workbench.forecasting.pricing import Seconds, priced
from workbench.forecasting.rates import Rates
from workbench.forecasting.stopwatch import Reading, Stopwatch, lines
from workbench.forecasting.trace import trace
from workbench.ops.timing import Timing, clock_of, measure, wait_for
from workbench.recipe import Recipe
from workbench.training.assemble import assemble
from workbench.training.loop import Training
from workbench.training.recorder import NotFinite

VOCABULARY = Vocabulary(2048, 2048, 1, 2, 3, 0, 4)
REFERENCE = 1
"""The model whose step measures the machine's speed: a bit of everything."""
STEPS = 3
"""Of a model per turn; the first finds another's caches and does not count."""
HELD = 0.4
"""Weight that holds the factors at 1, beside the models' errors: seven models cannot decide four numbers. At 0.1, on a
busy machine, the disturbance of single models drove factors to 0.3 and 1.6."""
CALL = 3e-6
"""Seconds beside an operation's kernel, before the factors."""

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
    """The recipes of the models that are trained: dominated by calls, by moving numbers, by products; eager."""
    execution = {
        "device": mode.device, "precision": mode.precision, "compile": False, "threads": mode.threads,
        "attention": "plain",
    }  # fmt: skip
    base = Recipe(budget="1000 steps").with_(execution=execution, optimizer={"kind": "adamw"})
    return [base.with_(**model) for model in _MODELS]


class SmallModel(contextlib.AbstractContextManager["SmallModel"]):
    """A model in training on random text.

    Args:
        recipe: what to train.
    """

    def __init__(self, recipe: Recipe) -> None:
        self._training = Training(recipe, assemble(recipe, _random_text()))
        self._device = self._training.device
        self._clock = clock_of(self._device)

    def __exit__(self, *_: object) -> None:
        self._training.close()

    def pass_seconds(self) -> list[float]:
        """Every kernel of a forward and backward pass, in the order in which they run."""
        assembled, training = self._training.assembled, self._training
        batch = training.batches.next(0, training.batch_size.shape(training.progress)).parts[0].to(self._device)
        with Stopwatch(self._clock, lambda: wait_for(self._device)) as watch:
            plan = LayerPlan.full(assembled.layers)
            loss = training.engine.forward(assembled.model, batch, plan, training.progress)
            loss.loss.backward()
        assembled.model.zero_grad(set_to_none=True)
        self.operations = [reading.operation for reading in watch.readings]
        return [reading.seconds for reading in watch.readings]

    def readings(self, timing: Timing) -> list[Reading]:
        """What :meth:`pass_seconds` took, by kernel."""
        return [Reading(*pair) for pair in zip(self.operations, timing.parts, strict=True)]

    def step_seconds(self) -> list[float]:
        """Of some steps, one by one."""
        return [self.step() for _ in range(STEPS)][1:]

    def step(self) -> float:
        """Take a step; returns its seconds."""
        start = self._clock()
        with contextlib.suppress(NotFinite):
            self._training.step()
        wait_for(self._device)
        return self._clock() - start


def fit_rates(rates: Rates, mode: Mode) -> Rates:
    """The rates with kernels read from small models in training, and factors that make their steps come out right."""
    recipes = models(mode)
    with contextlib.ExitStack() as stack:
        trained = {str(index): stack.enter_context(SmallModel(recipe)) for index, recipe in enumerate(recipes)}
        passes = measure({name: small.pass_seconds for name, small in trained.items()})
        steps = measure({name: small.step_seconds for name, small in trained.items()})
        readings = [reading for name, small in trained.items() for reading in small.readings(passes[name])]
    seconds = [timing.seconds / len(timing.parts) for timing in steps.values()]
    rates = rates.model_copy(update={"kernels": lines(readings), "call": CALL})
    parts = [predicted(recipe, rates) for recipe in recipes]
    optimizers = [optimizer_seconds(recipe, rates) for recipe in recipes]
    # Relative errors: a model of a millisecond counts as much as one of a hundred.
    rows = np.array([[part / whole for part in each] for each, whole in zip(parts, seconds, strict=True)])
    known = np.array([one / whole for one, whole in zip(optimizers, seconds, strict=True)])
    factors = fitted_factors(rows, 1 - known)
    left = np.abs(rows @ np.array(factors) + known - 1).mean()
    products, moving, calls, call = factors
    return rates.model_copy(
        update={
            "factors": (products, moving, calls), "call": CALL * call / calls,
            "error": round(float(left), 4), "reference": seconds[REFERENCE],
            "disagreement": round(max(timing.disagreement for timing in steps.values()), 4),
        }
    )  # fmt: skip


def fitted_factors(rows_NK: np.ndarray, wanted_N: np.ndarray) -> tuple[float, ...]:
    """Factors f near 1 that bring rows f closest to wanted: ridge regression, clipped to [0.3, 3].

    Args:
        rows_NK: (N, K): predicted parts over the measured whole, by model.
        wanted_N: (N,): share of the whole that they should make up.
    """
    ones = np.ones(rows_NK.shape[1])
    hold = HELD**2 * np.eye(len(ones))
    moved = np.linalg.solve(rows_NK.T @ rows_NK + hold, rows_NK.T @ (wanted_N - rows_NK @ ones))
    return tuple(float(factor) for factor in (ones + moved).clip(0.3, 3.0))


def predicted(recipe: Recipe, rates: Rates) -> tuple[float, float, float, float]:
    """Seconds of a small model's step: products, moving, kernels' calls, calls beside them."""
    length, engine = recipe.data.longest, recipe.engine()
    spec = ModelSpec(recipe.architecture, recipe.objective, VOCABULARY, length, engine.attention)
    found = trace(spec, recipe.data.most_rows, length, engine.dtype)
    kernels = rates.model_copy(update={"call": 0.0})
    whole = priced(found, kernels, False, engine.device.type == "cuda")
    total = Seconds()
    layers = [*(whole.layers[sort] for sort in whole.sorts), whole.last]
    for price in (whole.shared, *layers, whole.head):
        total = total.plus(price.forward).plus(price.backward)
    parts = [found.shared, *(found.layers[sort] for sort in found.sorts), found.last, found.head]
    operations = sum(len(part.forward) + len(part.backward) for part in parts)
    return *total, operations * rates.call


def optimizer_seconds(recipe: Recipe, rates: Rates) -> float:
    """Seconds of an optimizer's step over all of a small model's parameters."""
    size = sizes(ModelSpec(recipe.architecture, recipe.objective, VOCABULARY, recipe.data.longest))
    return rates.optimizers[recipe.optimizer.kind].seconds_of(size.matrices, size.vectors, size.tables)


def _random_text() -> PreparedData:
    """Documents of 100 random tokens: a model's speed does not depend on its text."""
    drawn = np.random.default_rng(0).integers(5, VOCABULARY.used, (600, 100)).astype(np.uint16)
    drawn[:, 0], drawn[:, -1] = VOCABULARY.cls, VOCABULARY.sep
    store = TokenStore(drawn.reshape(-1), np.arange(0, drawn.size + 1, 100))
    counts_V = np.bincount(store.ids_N, minlength=VOCABULARY.size)
    return PreparedData(store, store, VOCABULARY, "", counts_V)
