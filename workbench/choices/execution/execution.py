"""Define the contract of an execution: it carries out the same mathematics its own way, by the engine it prepares."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import torch
from pydantic import BeforeValidator, Field
from pydantic_core import PydanticCustomError

from workbench.base.errors import RecipeError
from workbench.base.text import many
from workbench.choices.choice import Choice, Problem, knob
from workbench.choices.execution.engine import Engine
from workbench.choices.execution.environment import EngineEnvironment
from workbench.choices.execution.micro_batches import divisors


class Process(NamedTuple):
    """Describe the process in which an engine trains.

    Attributes:
        python: path of the interpreter.
        environment: variables that it needs, beside those of every trainer.
    """

    python: str = sys.executable
    environment: Mapping[str, str] = MappingProxyType({})


def _rows(value: Any) -> Any:
    """Return one message for a value that fits none of the types of ``micro_batch_size``."""
    if value is None or value == "auto" or (isinstance(value, int) and not isinstance(value, bool) and value >= 1):
        return value
    why = "must be a whole number of rows >= 1, 'auto' for the most that fit, or empty for all"
    raise PydanticCustomError("rows", "{why}", {"why": why})


class Execution(Choice):
    """Base of the execution engines: device, threads, micro-batches and how often telemetry is taken."""

    axis: ClassVar[str] = "execution"
    provides: ClassVar[tuple[str, ...]] = ("engine",)
    # The Python of its own that an engine trains in; `workbench engines` builds and lists those that engines name.
    environment: ClassVar[EngineEnvironment | None] = None
    # True where an optimizer may have several workers, see `Combine`.
    takes_workers: ClassVar[bool] = False
    device: Literal["auto", "cpu", "cuda"] = knob("auto", "device to train on; auto: a GPU if there is one")
    threads: int | None = knob(None, "CPU threads for the trainer; empty means all cores", ge=1, le=1024)
    micro_batch_size: Annotated[Annotated[int, Field(ge=1)] | Literal["auto"] | None, BeforeValidator(_rows)] = knob(
        None,
        "rows of full length per micro-batch (gradients accumulate); empty: all, auto: the most that fit",
        unit="rows",
    )
    scalars_every: int = knob(1, "steps between scalar telemetry records", unit="steps", ge=1)
    layers_every: int = knob(10, "steps between per-layer telemetry records", unit="steps", ge=1)

    def engine(self, recipe: Any) -> Engine:
        """Return the engine that carries out ``recipe``, whose execution this is; light, see :class:`Engine`.

        Raises:
            RecipeError: the device is not there, or cannot do what is asked.
        """
        raise NotImplementedError

    def graph_knobs(self) -> dict[str, Any]:
        """Return, as JSON, the knobs that may decide what is compiled."""
        return self.model_dump(mode="json")

    def eager(self) -> dict[str, Any]:
        """Return, as JSON, what carries out short runs whose rows change their shape: torch, without compilation."""
        return {"kind": "native", "compile": False, "device": self.device, "threads": self.threads}

    def process(self) -> Process:
        """Return the process of the trainer: in the engine's own environment, where it has one, else in this Python.

        Raises:
            EngineError: the environment is not installed, half installed, or of other versions.
        """
        if self.environment is None:
            return Process()
        return Process(str(self.environment.ready()), self.environment.variables())

    def resolve_device(self) -> torch.device:
        """Return the device in force.

        Raises:
            RecipeError: ``cuda`` without a CUDA device, or something that the device cannot carry out.
        """
        # is_available counts devices; it makes no CUDA context.
        there = torch.cuda.is_available()
        if self.device == "cuda" and not there:
            raise RecipeError(
                "execution.device: 'cuda' was asked for, but this machine has no CUDA device; use 'auto' or 'cpu'"
            )
        device = "cuda" if there and self.device != "cpu" else "cpu"
        for problem in self.device_problems(device):
            raise RecipeError(f"{problem.path}: {problem.message}")
        return torch.device(device)

    def gpus(self) -> list[str]:
        """Return GPUs of which a run takes the first free one, as ``CUDA_VISIBLE_DEVICES`` names them; none on the CPU.

        Raises:
            RecipeError: as :meth:`resolve_device`.
        """
        if self.resolve_device().type != "cuda":
            return []
        named = [gpu.strip() for gpu in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
        return [gpu for gpu in named if gpu] or [str(index) for index in range(torch.cuda.device_count())]

    def device_problems(self, device: str) -> Iterator[Problem]:
        """Yield what ``device`` (``cpu`` or ``cuda``) cannot carry out: the one named, and the one given."""
        yield from ()

    def problems_here(self) -> Iterator[Problem]:
        """Refuse an engine that is not installed; more threads than this machine has cores: they take turns, and
        everything
        else on it stands still.
        """
        if self.environment is not None and (lacking := self.environment.lacking()):
            yield Problem("execution.kind", lacking)
        cores = os.cpu_count() or 1
        if self.threads is not None and self.threads > cores:
            yield Problem(
                "execution.threads",
                f"{many(self.threads, 'thread')}, and this machine has {many(cores, 'core')}; use "
                + (f"1..{cores}, or empty for all of them" if cores > 1 else "1, or empty for all there is"),
            )

    def readers(self, processes: int) -> int:
        """Return how many of the processes of a run share the rows of a step; with 1, each goes through all of them."""
        return processes

    def problems_together(self, recipe: Any, processes: int) -> Iterator[Problem]:
        """Yield that this engine cannot; those that can say otherwise."""
        kind = self.kind  # type: ignore[attr-defined]
        yield Problem("execution.kind", f"'{kind}' trains in one process; use 'native', or train in one process")

    def workers_problems(self, recipe: Any) -> Iterator[Problem]:
        """Yield that the optimizer cannot have several workers here."""
        if recipe.optimizer.combine.count > 1 and not self.takes_workers:
            kind = self.kind  # type: ignore[attr-defined]
            why = f"the engine '{kind}' takes one step for the whole batch; use execution.kind 'native', or 'mean'"
            yield Problem("optimizer.combine.kind", why)

    def memory_remedies(self, recipe: Any) -> list[str]:
        """Return changes of the execution that help where memory ran out, cheapest first, for people."""
        size = self.micro_batch_size or recipe.data.most_rows
        if size == "auto" or size == 1:
            return []
        return [f"execution.micro_batch_size {divisors(size)[-2]} or less (the same mathematics in smaller pieces)"]

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Yield what the named device cannot carry out, and micro-batches whose rows do not divide the batch."""
        # What `auto` means is seen where the run will be.
        if self.device != "auto":
            yield from self.device_problems(self.device)
        yield from self.workers_problems(recipe)
        size = self.micro_batch_size
        if size is None or size == "auto":
            return
        # The ends of a schedule stand for it: what lies between is rounded to whole micro-batches as it moves.
        for rows in sorted({recipe.data.fewest_rows, recipe.data.most_rows}):
            # A batch smaller than a micro-batch is one by itself, when a schedule begins or ends with it.
            if rows % size == 0 or (rows < size and rows != recipe.data.most_rows):
                continue
            legal = divisors(rows)
            shown = ", ".join(map(str, legal if len(legal) <= 12 else [*legal[:6], "...", *legal[-5:]]))
            yield Problem(
                "execution.micro_batch_size", f"{size} rows do not divide data.batch_size {rows}; use one of {shown}"
            )
