"""torch itself: eager or compiled block by block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor

from workbench.choices.choice import Problem, knob, one_of
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution import packed_attention, whole_step
from workbench.choices.execution.loss_scaling import DeviceScaler
from workbench.choices.execution.memory_saving import MemorySavingEngine, SavesMemory
from workbench.choices.execution.parallel.data import DataParallel
from workbench.choices.execution.parallel.parallel import Parallel
from workbench.choices.execution.parallel.workers import WorkersExchange, WorkersOptimizer
from workbench.choices.execution.precision import check_capability, emulated, in_fp8, refusal
from workbench.choices.execution.ranks import Ranks
from workbench.choices.objectives.objective import Loss, TrainingModel
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.choices.progress import Progress
from workbench.ops.attention import ATTENTION
from workbench.ops.compiled_cache import missing_compiler
from workbench.ops.packed_attention import PACKED

_EAGER = (
    "execution.compile is on, but this machine has no C++ compiler '{}': nothing is compiled and steps take "
    "longer; install one (`apt install g++`, `conda install gxx`), or name another one in $CXX"
)


class Native(SavesMemory):
    """PyTorch on one device: autocast precision, per-block compilation, measured choice of attention."""

    kind: Literal["native"] = "native"
    takes_workers: ClassVar[bool] = True
    precision: Literal["fp32", "tf32", "bf16", "fp16", "fp8"] = knob(
        "bf16", "precision of matrix products; weights stay fp32. tf32, fp16 and fp8 need a GPU, fp8 also torchao"
    )
    compile: bool = knob(True, "compile the model (torch.compile); the first steps take longer, all others are faster")
    compile_scope: Literal["blocks", "step", "graphs"] = knob(
        "blocks",
        "unit of compilation: each block and the head (skipped layers cost nothing), each pass of a step, or "
        "that as CUDA graphs",
    )
    attention: Literal["auto", "plain", "sdpa", "flex", "varlen"] = knob(
        "auto",
        "attention implementation; auto measures plain and sdpa once per device, precision and length, then remembers; "
        "flex and varlen need a GPU",
    )

    head: Literal["labelled", "all"] = knob(
        "labelled", "positions the output matrix is applied to in training; all costs more for the same loss"
    )
    padding: Literal["removed", "kept"] = knob(
        "removed", "documents share rows, or each gets its own padded rows, which costs more for the same loss"
    )
    parallel: one_of(Parallel) = knob(  # type: ignore[valid-type]
        help="how several processes train one model; the launcher says how many", default_factory=DataParallel
    )

    def graph_knobs(self) -> dict[str, Any]:
        """See :meth:`Execution.graph_knobs`; each process compiles its own graphs, whatever they exchange."""
        return {name: value for name, value in super().graph_knobs().items() if name != "parallel"}

    def eager(self) -> dict[str, Any]:
        """See :meth:`Execution.eager`; in the same precision."""
        return super().eager() | {"precision": self.precision}

    def engine(self, recipe: Any) -> NativeEngine:
        """See :class:`NativeEngine`."""
        return NativeEngine(recipe)

    def device_problems(self, device: str) -> Iterator[Problem]:
        """Refuse graphs, attention and precision that the device has not."""
        yield from super().device_problems(device)
        if device == "cpu" and self.compile_scope == "graphs":
            why = "execution.device is 'cpu'" if self.device == "cpu" else "there is no CUDA device here"
            yield Problem("execution.compile_scope", f"'graphs' are CUDA's, and {why}; use 'blocks' or 'step'")
        if device == "cpu" and self.attention in packed_attention.ON_GPU:
            yield Problem("execution.attention", packed_attention.no_gpu(self.attention))
        if why := refusal(self.precision, device):
            yield Problem("execution.precision", why)

    def readers(self, processes: int) -> int:
        """See :meth:`Execution.readers`; the way of parallel training says."""
        return processes if self.parallel.shares_rows else 1

    def problems_together(self, recipe: Any, processes: int) -> Iterator[Problem]:
        """Yield that GPUs cannot."""
        if (device := self.resolve_device().type) != "cpu":
            why = f"several processes train on CPUs, not on '{device}'; use 'cpu', or train in one process"
            yield Problem("execution.device", why)
        yield from self.parallel.problems_together(recipe, processes)

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse attention and scopes that this recipe cannot have, and what every engine refuses."""
        yield from packed_attention.problems(recipe)
        if self.compile_scope != "blocks":
            if not self.compile:
                yield Problem(
                    "execution.compile_scope",
                    f"'{self.compile_scope}' says what is compiled, and execution.compile is off; switch it on, or "
                    "use 'blocks'",
                )
            yield from whole_step.problems(recipe, self.compile_scope)
        for name in ("head", "padding"):
            only = type(self).model_fields[name].default
            if (value := getattr(self, name)) != only and (added := recipe.objective.added_parts):
                why = (
                    f"'{value}' lays out rows for one head, and the objective adds {' and '.join(added)}; use '{only}'"
                )
                yield Problem(f"execution.{name}", why)
        if self.padding == "kept" and recipe.architecture.keeps_notes():
            yield Problem("execution.padding", "'kept' hides from notes which tokens are true; use 'removed'")
        yield from self._memory_problems()
        yield from self._workers_problems(recipe)
        yield from self.parallel.problems(recipe)
        yield from super().problems(recipe)

    def _workers_problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse knobs that an optimizer of several workers has no use for yet."""
        if recipe.optimizer.combine.count == 1:
            return
        plain = {"weights": "fp32", "optimizer_states": "fp32", "compile_scope": "blocks"}
        unfit = [(name, getattr(self, name)) for name, only in plain.items() if getattr(self, name) != only]
        unfit += [("precision", self.precision)] if self.precision == "fp16" else []
        if self.parallel != DataParallel(bucket_mib=getattr(self.parallel, "bucket_mib", 25.0)):
            unfit.append(("parallel", self.parallel.kind))
        for name, value in unfit:
            why = f"'{value}' goes with one step for the whole batch; use its default, or optimizer.combine 'mean'"
            yield Problem(f"execution.{name}", why)

    def _memory_problems(self) -> Iterator[Problem]:
        """Refuse ways to save memory that precision or compilation rule out."""
        if self.weights == "bf16" and self.precision != "bf16":
            yield Problem(
                "execution.weights",
                "'bf16' weights meet activations of the same precision only, and execution.precision is "
                f"'{self.precision}'; use 'bf16' for both, or weights 'fp32'",
            )
        if self.optimizer_states != "fp32" and self.precision == "fp16":
            yield Problem(
                "execution.optimizer_states",
                f"'{self.optimizer_states}': under fp16 a step that overflows is undone, and stored moments are not; "
                "use 'fp32', or execution.precision 'bf16'",
            )
        if self.recompute in ("activation", "dropout") and self.compile:
            yield Problem(
                "execution.recompute",
                f"'{self.recompute}' is what compiled blocks do by themselves; use 'attention', 'operations' or "
                "'layers', or set execution.compile to false",
            )
        if self.compile_scope == "blocks":
            return
        for name in ("weights", "recompute", "optimizer_states"):
            if (value := getattr(self, name)) != type(self).model_fields[name].default:
                yield Problem(
                    f"execution.{name}",
                    f"'{value}' needs execution.compile_scope 'blocks', and it is '{self.compile_scope}'",
                )


class NativeEngine(MemorySavingEngine):
    """A recipe under :class:`Native`."""

    def __init__(self, recipe: Any) -> None:
        super().__init__(recipe)
        asked: Native = recipe.execution
        self.precision = asked.precision
        # Graphs for a GPU are compiled by Triton, which brings its own.
        absent = missing_compiler() if asked.compile and self.device.type == "cpu" else ""
        self.compiled = asked.compile and not absent
        self._eager = absent and _EAGER.format(absent)
        self.head, self.padding, self.scope = asked.head, asked.padding, asked.compile_scope
        self._whole = None if self.scope == "blocks" else whole_step.WholeStep(captured=self.scope == "graphs")
        self.attentions = tuple(ATTENTION) if asked.attention == "auto" else (asked.attention,)
        # In force for fp16 only; for other precisions every call passes through.
        self._scaler = DeviceScaler(self.device.type, enabled=self.precision == "fp16")
        if self._scaler.is_enabled():
            self.overflow_advice = "set execution.precision to 'bf16' or 'fp32', which reach further"

    @property
    def priced_attentions(self) -> tuple[str, ...]:
        """See :attr:`Engine.priced_attentions`; operations of those that go by documents are not traced."""
        return ("sdpa",) if self.attentions[0] in PACKED else self.attentions

    def assumptions(self) -> list[str]:
        """See :meth:`Engine.assumptions`."""
        found = super().assumptions()
        found += filter(None, (emulated(self.precision, self.device.type), self._eager))
        if self.padding == "kept":
            found.append("execution.padding 'kept' is priced as 'removed': how many rows more depends on the documents")
        if self.attentions[0] in PACKED:
            found.append(f"execution.attention '{self.attentions[0]}' is priced as 'sdpa'")
        if self.scope != "blocks":
            found.append(f"execution.compile_scope '{self.scope}' is priced as 'blocks'")
        return found

    @property
    def findings(self) -> dict[str, str]:
        """See :attr:`Engine.findings`."""
        slow = "; ".join(filter(None, (emulated(self.precision, self.device.type), self._eager)))
        return super().findings | ({"warning": slow} if slow else {})

    def described(self) -> dict[str, Any]:
        """See :meth:`Engine.described`."""
        return super().described() | {
            "compiled": self.scope if self.compiled else "off", "head": self.head, "padding": self.padding,
        }  # fmt: skip

    def join(self, ranks: Ranks) -> None:
        """See :meth:`Engine.join`; with what the recipe says they exchange."""
        super().join(ranks)
        if ranks.size > 1 and self.recipe.optimizer.combine.count > 1:
            self.exchange = WorkersExchange(ranks)
        elif ranks.size > 1:
            self.exchange = self.recipe.execution.parallel.exchange(ranks)

    def optimizer(self, choice: OptimizerChoice, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        """See :meth:`Engine.optimizer`; of several processes, each may have a part of it."""
        build = partial(super().optimizer, choice)
        if choice.combine.count > 1:
            return WorkersOptimizer(build, groups, self.ranks, choice.combine.count, choice.combine.pair)
        if self.ranks.size == 1:
            return build(groups)
        made: torch.optim.Optimizer = self.recipe.execution.parallel.optimizer(build, groups, self.ranks)
        return made

    def start(self) -> None:
        """See :meth:`Engine.start`.

        Raises:
            RecipeError: this GPU is too old for the precision.
        """
        check_capability(self.precision, self.device)
        super().start()

    def place(self, model: TrainingModel) -> TrainingModel:
        """See :meth:`Engine.place`; products of the blocks become fp8's where that is asked for."""
        if self.precision == "fp8":
            for stack in model.stacks().values():
                in_fp8(stack.blocks)
        return super().place(model)

    def compile(self, model: TrainingModel) -> None:
        """Block by block, and the head; or for training as a whole, while scoring keeps its blocks."""
        if self.compiled:
            model.compile()
            if self._whole is not None:
                self._whole.add(model)

    def forward(self, model: TrainingModel, batch: Batch, plan: LayerPlan, progress: Progress) -> Loss:
        """See :meth:`Engine.forward`."""
        if self._whole is None or model not in self._whole:
            return super().forward(model, batch, plan, progress)
        with self.autocast():
            return self._whole.forward(model, batch, progress)

    @property
    def loss_scale(self) -> float | None:
        """Return the loss scale of fp16; waits for the device."""
        return self._scaler.get_scale() if self._scaler.is_enabled() else None

    def backward(self, loss: Tensor, parts: int = 1) -> None:
        """See :meth:`Engine.backward`; gradients are scaled until :meth:`finish`."""
        super().backward(self._scaler.scale(loss), parts)

    def finish(self, optimizer: torch.optim.Optimizer) -> None:
        """Unscale: the norm that is limited and reported is that of the true gradients."""
        super().finish(optimizer)
        self._scaler.unscale_(optimizer)

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """See :meth:`Engine.step`; under fp16, weights and state stay what they are if a gradient overflowed."""
        self._scaler.step(optimizer)
        self._scaler.update()
        optimizer.zero_grad(set_to_none=True)
        if self._whole is not None:
            self._whole.next_step()

    def settle(self, everywhere: bool = False) -> None:
        """See :meth:`Engine.settle`; under fp16 the host may not know yet that the step overflowed."""
        super().settle(everywhere)
        self._scaler.settle()

    def state(self) -> dict[str, Any]:
        """Return the state of the loss scale; empty but under fp16."""
        return self._scaler.state_dict()

    def restore(self, state: Mapping[str, Any]) -> None:
        """See :meth:`Engine.restore`; empty unless the precision was fp16, which a fork may have changed."""
        if state:
            self._scaler.load_state_dict(dict(state))
