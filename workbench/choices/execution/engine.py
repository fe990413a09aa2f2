"""Define the contract of an engine: everything between a recipe's mathematics and the device that carries it out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from workbench.base.cache_folder import cache_folder
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.attention_probe import attention_benchmark
from workbench.choices.execution.memory_plan import WHOLE, MemoryPlan
from workbench.choices.execution.parallel.parallel import Exchange
from workbench.choices.execution.precision import DTYPES, set_float32_products
from workbench.choices.execution.ranks import Ranks
from workbench.choices.objectives.objective import Loss, TrainingModel
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.choices.progress import LOOK_AHEAD, Progress, progress_at
from workbench.choices.schedules.schedule import Schedule
from workbench.ops.remembered import FOLDER, Benchmark, device_name, fastest


class Mode(NamedTuple):
    """Hold everything that decides how fast an engine is on a machine, and so for which a forecast is valid.

    Attributes:
        device: ``cpu`` or ``cuda``.
        threads: of the trainer.
        precision: of products.
        compiled: whether blocks are.
    """

    device: str
    threads: int
    precision: str
    compiled: bool

    @property
    def dtype(self) -> torch.dtype:
        """Return the dtype that products read and write."""
        return DTYPES[self.precision]


class Engine:
    """A recipe's execution at work: as it stands, torch on one device, eager and in float32.

    The only thing that loop, assembly, warm-up, evaluation, forecast and benchmarks ask about execution. Making one is
    light, whatever the engine: a notebook makes it for a forecast. Only :meth:`start` takes over a process.

    Args:
        recipe: to carry out.
        device: instead of the one that the recipe asks for.

    Attributes:
        device: of model, batches and gradients.
        precision: of products, by name; weights and losses are float32.
        compiled: whether blocks are.
        attentions: implementations of attention to choose from.
        head, padding: how training lays out its rows, see :meth:`TrainingModel.lay_out`.
        micro_batch_size: rows of the longest length that go through the model at once, at most; None for any number.
        overflow_advice: what helps against gradients that overflow, beside a lower learning rate.
        memory: how weights, gradients, states and activations are held.
        settled: what :meth:`fit` decided, in words; empty for nothing.
        planned: what :meth:`calibrated` found, in words; empty for nothing.
        ranks: which of several processes that train together this one is.
        exchange: what it does with the others in every step.
        provisional: why a forecast's figures will change once :meth:`calibrated` has found something; empty else.
    """

    precision: str = "fp32"
    compiled: bool = False
    attentions: tuple[str, ...] = ("plain",)
    head: str = "labelled"
    padding: str = "removed"
    overflow_advice: str = ""
    memory: MemoryPlan = WHOLE
    settled: str = ""
    planned: str = ""
    provisional: str = ""
    ranks: Ranks = Ranks()
    exchange: Exchange = Exchange()

    def __init__(self, recipe: Any, device: torch.device | None = None) -> None:
        self.recipe = recipe
        self.device: torch.device = device or recipe.execution.resolve_device()
        size = recipe.execution.micro_batch_size
        self.micro_batch_size: int | None = None if size == "auto" else size
        self._attention = ""

    # --- what it is, for forecasts and records --------------------------------------------------------------------

    @property
    def mode(self) -> Mode:
        """Return the mode that forecasts price."""
        threads = self.recipe.execution.threads or torch.get_num_threads()
        return Mode(self.device.type, threads, self.precision, self.compiled)

    @property
    def dtype(self) -> torch.dtype:
        """Return the dtype that products read and write."""
        return self.mode.dtype

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
    def findings(self) -> dict[str, str]:
        """Return the findings made before the first step, in words, by kind of event."""
        return {kind: text for kind, text in (("plan", self.planned), ("memory", self.settled)) if text}

    @property
    def remembered_attention(self) -> str:
        """Return the implementation that was measured fastest for such a recipe here; empty if none was."""
        found = [fastest(each) for one in self.benchmarks() if (each := one.recalled(cache_folder() / FOLDER))]
        return found[0] if found else ""

    def benchmarks(self) -> list[Benchmark]:
        """Measurements that a run relies on; they are checked again when it has settled."""
        # A model of the user's has its own attention.
        chooses = len(self.attentions) > 1 and not self.recipe.architecture.placeholder
        return [self._attention_benchmark()] if chooses else []

    def described(self) -> dict[str, Any]:
        """Return its part of ``environment.json``: the settings in force, which a recipe may leave open."""
        return {"attention": self.attention, "precision": self.precision}

    @property
    def priced_attentions(self) -> tuple[str, ...]:
        """Those of :attr:`attentions` that a forecast prices, or what stands for them."""
        return self.attentions

    def assumptions(self) -> list[str]:
        """Return what a forecast leaves out or takes for granted about it, a sentence each."""
        return []

    def resume(self, begun: Mapping[str, Any]) -> Engine:
        """Return the engine that carries on as a run began, so that it repeats bit for bit whatever was measured since.

        Args:
            begun: ``environment.json`` of the run.
        """
        same = begun.get("device") == device_name(self.device)
        self._attention = next((name for name in self.attentions if same and name == begun.get("attention")), "")
        return self

    @property
    def workers(self) -> int:
        """Return how many workers of the optimizer step in this process, one after the other."""
        count: int = self.recipe.optimizer.combine.count
        return max(1, count // self.ranks.size)

    @property
    def shares(self) -> int:
        """Return into how many parts the rows of a micro-batch are cut: one for each worker, or for each process."""
        return self.workers * self.readers.size

    @property
    def readers(self) -> Ranks:
        """Return which of the processes that share the rows of a step this one is; alone where it reads all of them."""
        return self.ranks if self.recipe.execution.readers(self.ranks.size) > 1 else Ranks()

    # --- before the first step ------------------------------------------------------------------------------------

    def calibrated(self, say: Callable[[str], None]) -> Engine:
        """Return the engine of a run: itself, unless its execution leaves knobs to be found by measuring.

        Args:
            say: called with a line before something takes long.
        """
        return self

    def join(self, ranks: Ranks) -> None:
        """Train as one of several processes; before a model is placed."""
        self.ranks = ranks

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

    def start(self) -> None:
        """Make this process a trainer: set what belongs to the process as a whole."""
        if self.recipe.execution.threads:
            torch.set_num_threads(self.recipe.execution.threads)
        set_float32_products(self.precision, self.device)

    def place(self, model: TrainingModel) -> TrainingModel:
        """The model on the device, ready to train; its ``state_dict`` keeps its names, since checkpoints hold them."""
        model.lay_out(self.head, self.padding)
        return model.to(self.device)

    def optimizer(self, choice: OptimizerChoice, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """The optimizer over the parameters of a placed model, without any state; its groups keep their names.

        Args:
            choice: which.
            groups: as :func:`~workbench.choices.optimizers.optimizer.parameter_groups` gives them.
        """
        optimizer = choice.build(groups, self.device)
        for group in optimizer.param_groups:
            # Of optimizers that have a compiled step. Here, so that one that is built at a later stage takes it, too.
            if "compile" in group:
                group["compile"] = self.compiled
        return optimizer

    def fit(self, model: TrainingModel, optimizer: torch.optim.Optimizer, rehearse: Callable[[int], Tensor]) -> None:
        """Settle what depends on the memory there is, before anything is compiled; called once.

        Args:
            model: as :meth:`place` gave it.
            optimizer: as :meth:`optimizer` gave it; of a run that goes on from a checkpoint, with the state of that.
            rehearse: the loss of a forward pass over so many rows of the longest length.

        Raises:
            RecipeError: it does not fit; says what is missing.
        """

    def compile(self, model: TrainingModel) -> None:
        """Make ``model`` compile at its next passes, which are a rehearsal; not called again for the same model."""

    def save_graphs(self, folder: Path) -> None:
        """Write what was made of the model, where that is a file to look into, into ``folder``, made for it."""

    # --- a step ---------------------------------------------------------------------------------------------------

    def autocast(self) -> AbstractContextManager[Any]:
        """The context of every pass through the model, also of those that score or sample."""
        return torch.autocast(self.device.type, self.dtype, enabled=self.dtype != torch.float32)

    def forward(self, model: TrainingModel, batch: Batch, plan: LayerPlan, progress: Progress) -> Loss:
        """Loss of a micro-batch, to be trained on.

        Args:
            model: as :meth:`place` gave it.
            batch: rows of tokens, (B, T), on the device.
            plan, progress: as for :class:`TrainingModel`.
        """
        with self.exchange.passing(), self.autocast():
            loss: Loss = self.exchange.module(model, plan)(batch, plan, progress)
        return loss

    @property
    def loss_scale(self) -> float | None:
        """Factor on the gradients until :meth:`finish`; None where nothing is scaled. Waits for the device."""
        return None

    def backward(self, loss: Tensor, parts: int = 1) -> None:
        """Add the gradients of a micro-batch to those that are there.

        Args:
            loss: its share of the step's loss, 0-d.
            parts: micro-batches of the step.
        """
        with self.exchange.passing():
            loss.backward()
        self.exchange.launch()

    def last(self, model: TrainingModel, plan: LayerPlan, whole: bool) -> None:
        """Before the backward pass of a step's last micro-batch: begin to sum gradients over the processes in it.

        Args:
            whole: see :meth:`Exchange.last`.
        """
        self.exchange.last(model, plan, whole)

    def finish(self, optimizer: torch.optim.Optimizer) -> None:
        """After the last micro-batch: make the gradients those of the whole step and all processes, unscaled."""
        self.exchange.finish()

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Update the weights, and leave no gradients."""
        optimizer.step()
        # None, not zeros: a dropped layer must look untouched; whether it rests is for the depth method to say.
        optimizer.zero_grad(set_to_none=True)

    def settle(self, everywhere: bool = False) -> None:
        """Finish what the last step left pending on the host, before anybody reads the optimizer's state.

        Args:
            everywhere: in every process, not in the first alone.
        """
        self.exchange.settle(everywhere)

    def state(self) -> dict[str, Any]:
        """Return its part of a checkpoint, JSON-able."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Inverse of :meth:`state`; a checkpoint of this kind of engine, perhaps with other knobs."""

    def _attention_benchmark(self) -> Benchmark:
        recipe = self.recipe
        return attention_benchmark(
            recipe.architecture, self.device, self.precision, self.dtype, self.rows, recipe.data.longest,
            causal=recipe.objective.causal, compiled=self.compiled,
        )  # fmt: skip
