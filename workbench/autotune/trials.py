"""Short trials of the native engine's knobs on a recipe: steps of a small part of it, in pairs with the defaults.

Nothing is compiled here: that alone would take longer than a calibration may. Each candidate takes turns with the
defaults in one process, so that what disturbs one disturbs both, and only ratios leave it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import Any

import psutil
import torch

from workbench.base.errors import RecipeError
from workbench.choices.data.prepare import prepare
from workbench.choices.data.tokens import PreparedData
from workbench.choices.execution.autotune import Planned
from workbench.choices.execution.memory_fit import Kept, measured
from workbench.choices.execution.micro_batches import divisors
from workbench.ops.timing import LEAST_ROUNDS, Sample, measure, wait_for
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import assemble
from workbench.training.loop import Training

LAYERS = 3
"""Layers of the model that is tried: the first and the last differ from all between, which are alike."""
TOKENS = {"cpu": 4096, "cuda": 65536}
"""Tokens of a step that is tried, at most."""
FEW_TOKENS = 256
"""Tokens of the first step, which tells how many more there may be."""
STEP_SECONDS = 0.5
"""Seconds of a step that is tried, about, where fewer rows can be had."""
ROUNDS, PAIR_SECONDS = 8, 3.0
"""Limits of a candidate beside the defaults: rounds before the two may be settled, and seconds after which they end."""


class Trials:
    """The part of a recipe on which knobs are tried, until a deadline.

    Args:
        recipe: whose execution is :class:`Planned`.
        deadline: of :func:`time.monotonic`.

    Attributes:
        rows: of a step that is tried; fewer than the run's where that would take too long.
        layers: of the model that is tried.
        step_seconds: of a step with the defaults.
    """

    def __init__(self, recipe: Recipe, deadline: float) -> None:
        self.recipe, self.deadline = recipe, deadline
        self._began = time.monotonic(), self._busy(), time.process_time()
        assert isinstance(recipe.execution, Planned)
        self._planned = recipe.execution
        self._prepared: PreparedData = prepare(recipe.data, say=lambda line: None)
        self.device = recipe.execution.resolve_device()
        self.threads = recipe.execution.threads or torch.get_num_threads()
        self.layers = self._fewest_layers()
        self.step_seconds = math.inf
        self._plain = self._sized()

    @property
    def others(self) -> float:
        """Cores that other processes have kept busy since the beginning, on the average."""
        busy, own = self._busy(), time.process_time()
        seconds = time.monotonic() - self._began[0]
        return max(0.0, (busy - self._began[1] - (own - self._began[2])) / seconds)

    @staticmethod
    def _busy() -> float:
        """Return processor seconds of the whole machine, in which it was not idle."""
        times = psutil.cpu_times()
        return sum(times) - times.idle - getattr(times, "iowait", 0.0) - getattr(times, "guest", 0.0)

    @property
    def least_seconds(self) -> float:
        """Seconds that a candidate needs beside the defaults: a first step of both, and the fewest rounds."""
        return 2 * (1 + LEAST_ROUNDS) * self.step_seconds

    @property
    def seconds_left(self) -> float:
        """Until the deadline."""
        return self.deadline - time.monotonic()

    def refusal(self, knobs: Mapping[str, Any]) -> str:
        """Return the reason why recipe or device cannot have these knobs; empty if they can."""
        try:
            self.recipe.with_(execution=self._planned.settled(knobs)).engine()
        except RecipeError as error:
            return str(error).splitlines()[-1].strip()
        return ""

    def time(self, knobs: Mapping[str, Any], seconds: float = PAIR_SECONDS) -> float:
        """Return a step with these knobs, as a multiple of one with the defaults, beside which it is measured.

        Args:
            knobs: that :meth:`refusal` has nothing against.
            seconds: that the two may take together.
        """
        tried, limit = self._training(knobs), min(seconds, PAIR_SECONDS)
        samples = {"defaults": self._step(self._plain), "tried": self._step(tried)}
        found = measure(samples, rounds=ROUNDS, least_seconds=0.2, limit_seconds=limit)
        tried.close()
        # What was seen first may have been a busy moment.
        self.step_seconds = min(self.step_seconds, found["defaults"].seconds)
        return found["tried"].seconds / found["defaults"].seconds

    def eager_seconds(self) -> float | None:
        """Return about what the steps of the run take eagerly with the defaults; None for a budget in seconds."""
        budget, training = self.recipe.budget, self._plain
        if budget.unit == "seconds":
            return None
        steps = training.progress.step
        tokens, flops = training.progress.tokens / steps, training.recorder.useful_flops / steps
        layer = sum(p.numel() for p in training.model.backbone.blocks[0].parameters())
        # Two for each weight and token forward, four backward.
        more = 6.0 * layer * tokens * (self.recipe.architecture.layers - self.layers)
        rows = self.recipe.data.most_rows
        whole = budget.amount if budget.unit == "tokens" else budget.amount * tokens * rows / self.rows
        return self.step_seconds * (1 + more / flops) * whole / tokens

    def kept(self, knobs: Mapping[str, Any]) -> tuple[Kept, int]:
        """Return bytes that a pass of the whole model keeps with these knobs, counted, and its parameters."""
        found, parameters = self._kept(knobs, self.layers)
        if not (more := self.recipe.architecture.layers - self.layers):
            return found, parameters
        one_more, with_it = self._kept(knobs, self.layers + 1)
        whole = Kept(
            found.fixed + more * (one_more.fixed - found.fixed),
            found.per_row + more * (one_more.per_row - found.per_row),
            found.blocks + (found.blocks[1],) * more,
        )
        return whole, parameters + more * (with_it - parameters)

    def _kept(self, knobs: Mapping[str, Any], layers: int) -> tuple[Kept, int]:
        training = self._training(knobs, layers)
        found = measured(training.model, training.rehearse)
        training.close()
        return found, sum(p.numel() for p in training.model.parameters())

    def close(self) -> None:
        """Let the data thread of the defaults end."""
        self._plain.close()

    def _fewest_layers(self) -> int:
        layers = min(LAYERS, self.recipe.architecture.layers)
        try:
            self.recipe.with_(depth="full", architecture={"layers": layers})
        # Some patterns of layers have no shorter form.
        except RecipeError:
            return self.recipe.architecture.layers
        return layers

    def _sized(self) -> Training:
        """Return the defaults at as many rows, a divisor of the run's,
        as make a step that takes no longer than it may.
        """
        length, most = self.recipe.data.longest, self.recipe.data.most_rows
        limit = max(1, TOKENS[self.device.type] // length)
        sizes = [rows for rows in divisors(most) if rows <= limit]
        # From few rows on: where a step of many takes a minute, looking at it would take the whole calibration.
        self.rows = next((rows for rows in sizes if rows * length >= FEW_TOKENS), sizes[-1])
        few = self._training({})
        seconds = self._seconds(few)
        fitting = [rows for rows in sizes if rows <= self.rows * STEP_SECONDS / seconds]
        if not fitting or fitting[-1] == self.rows:
            self.step_seconds = seconds
            return few
        few.close()
        self.rows = fitting[-1]
        training = self._training({})
        self.step_seconds = self._seconds(training)
        return training

    def _seconds(self, training: Training) -> float:
        """Return the seconds of a second step."""
        step = self._step(training)
        step()
        return step()[0]

    def _training(self, knobs: Mapping[str, Any], layers: int | None = None) -> Training:
        """Return the part of the recipe, eager, with these knobs, before its first step."""
        given = {"threads": self.threads, **knobs, "compile": False}
        micro = given.get("micro_batch_size", self._planned.micro_batch_size)
        if isinstance(micro, str) or (micro and self.rows % micro):
            given["micro_batch_size"] = None
        data = {"batch_size": self.rows, "sequence_length": self.recipe.data.longest, "batch_rule": "as_scheduled"}
        part = self.recipe.with_(
            execution=self._planned.settled(given), depth="full", architecture={"layers": layers or self.layers},
            data=data, budget={"amount": 1e6, "unit": "steps"},
        )  # fmt: skip
        return Training(part, assemble(part, self._prepared), None)

    def _step(self, training: Training) -> Sample:
        def step() -> tuple[float]:
            # What belongs to the process as a whole, as threads, is the other's after its step.
            training.engine.start()
            began = time.perf_counter()
            training.step()
            wait_for(training.device)
            return (time.perf_counter() - began,)

        return step
