"""Define what a forecast needs to know of an engine: passes, attention and memory, before anything is built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from workbench.base.cache_folder import cache_folder
from workbench.choices.execution.attention_probe import attention_benchmark
from workbench.choices.execution.hardware import Hardware
from workbench.choices.execution.memory_plan import WHOLE, MemoryPlan
from workbench.choices.progress import LOOK_AHEAD, progress_at
from workbench.choices.schedules.schedule import Schedule
from workbench.ops.remembered import FOLDER, Benchmark, fastest


class Foreseen(Hardware):
    """Say what is known of a recipe's execution before a model is built: a forecast prices it, a run records it.

    Args:
        recipe, device: as for :class:`Hardware`.

    Attributes:
        attentions: implementations of attention to choose from.
        head, padding: how training lays out its rows, see :meth:`TrainingModel.lay_out`.
        micro_batch_size: rows of the longest length that go through the model at once, at most; None for any number.
        memory: how weights, gradients, states and activations are held.
        settled: what :meth:`Engine.fit` decided, in words; empty for nothing.
        planned: what :meth:`Engine.calibrated` found, in words; empty for nothing.
        provisional: why a forecast's figures will change once that has found something; empty else.
    """

    attentions: tuple[str, ...] = ("plain",)
    head: str = "labelled"
    padding: str = "removed"
    memory: MemoryPlan = WHOLE
    settled: str = ""
    planned: str = ""
    provisional: str = ""

    def __init__(self, recipe: Any, device: torch.device | None = None) -> None:
        super().__init__(recipe, device)
        size = recipe.execution.micro_batch_size
        self.micro_batch_size: int | None = None if size == "auto" else size
        self._attention = ""

    @property
    def rows(self) -> int:
        """Rows of the longest length per pass: :attr:`micro_batch_size`, or enough for the run's largest batch."""
        if self.micro_batch_size is not None:
            return self.micro_batch_size
        data, budget = self.recipe.data, self.recipe.budget
        scheduled = [each for each in (data.batch_size, data.sequence_length) if isinstance(each, Schedule)]
        # Where a schedule counts something else than the budget, nobody knows which rows and lengths will meet.
        if any(each.over not in ("budget", budget.unit) for each in scheduled):
            return int(data.most_rows)
        points = [progress_at(budget, point / LOOK_AHEAD) for point in range(LOOK_AHEAD)]
        return max(1, max(data.rows_at(point) * data.length_at(point) for point in points) // data.longest)

    @property
    def attention(self) -> str:
        """The implementation in force: of several, the one measured fastest for this recipe, or that of the run."""
        if not self._attention:
            benchmarks = self.benchmarks()
            self._attention = (
                fastest(benchmarks[0].seconds(cache_folder() / FOLDER)) if benchmarks else self.attentions[0]
            )
        return self._attention

    @property
    def priced_attentions(self) -> tuple[str, ...]:
        """Those of :attr:`attentions` that a forecast prices, or what stands for them."""
        return self.attentions

    def assumptions(self) -> list[str]:
        """Return what a forecast leaves out or takes for granted about it, a sentence each."""
        return []

    @property
    def findings(self) -> dict[str, str]:
        """Return the findings made before the first step, in words, by kind of event."""
        return {kind: text for kind, text in (("plan", self.planned), ("memory", self.settled)) if text}

    def described(self) -> dict[str, Any]:
        """Return its part of ``environment.json``: the settings in force, which a recipe may leave open."""
        return {"attention": self.attention, "precision": self.precision}

    @property
    def remembered_attention(self) -> str:
        """Return the implementation that was measured fastest for such a recipe here; empty if none was."""
        found = [fastest(each) for one in self.benchmarks() if (each := one.recalled(cache_folder() / FOLDER))]
        return found[0] if found else ""

    def benchmarks(self) -> list[Benchmark]:
        """Return measurements that a run relies on; they are checked again when it has settled."""
        # A model of the user's has its own attention.
        chooses = len(self.attentions) > 1 and not self.recipe.architecture.placeholder
        return [self._attention_benchmark()] if chooses else []

    def measure(self, tell: Callable[[str, str], None]) -> None:
        """Find :attr:`attention` before a model is built with it, in a process as training will have it.

        Args:
            tell: called with what is done and how often, unless it is known already.
        """
        if self._attention or self.remembered_attention or not self.benchmarks():
            return
        tell("measuring attention", "once per machine and shape of the model")
        self.start()
        _ = self.attention

    def _attention_benchmark(self) -> Benchmark:
        recipe = self.recipe
        return attention_benchmark(
            recipe.architecture, self.device, self.precision, self.dtype, self.rows, recipe.data.longest,
            causal=recipe.objective.causal, compiled=self.compiled,
        )  # fmt: skip
