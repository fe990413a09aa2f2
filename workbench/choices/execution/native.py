"""torch itself: eager or compiled block by block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import torch

from workbench.choices.choice import Problem, knob
from workbench.choices.execution.execution import Execution
from workbench.errors import RecipeError

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


class Native(Execution):
    """PyTorch on one device: autocast precision, per-block compilation, measured choice of attention."""

    kind: Literal["native"] = "native"
    device: Literal["auto", "cpu", "cuda"] = knob("auto", "where to train; auto takes a GPU if there is one")
    precision: Literal["fp32", "bf16", "fp16"] = knob("bf16", "matmul precision under autocast; weights stay fp32")
    compile: bool = knob(True, "compile each block and the head (torch.compile); skipped layers still cost nothing")
    attention: Literal["auto", "plain", "sdpa"] = knob(
        "auto", "attention implementation; auto measures once per device, precision and length, and remembers"
    )
    micro_batch_size: int | None = knob(
        None, "longest rows per micro-batch (gradient accumulation); empty means all", unit="rows", ge=1
    )
    threads: int | None = knob(None, "CPU threads for the trainer; empty means all cores", ge=1, le=1024)
    scalars_every: int = knob(1, "steps between scalar telemetry records", unit="steps", ge=1)
    layers_every: int = knob(10, "steps between per-layer telemetry records", unit="steps", ge=1)

    def resolve_device(self) -> torch.device:
        """The device in force.

        Raises:
            RecipeError: ``cuda`` without a CUDA device, or fp16 on a CPU.
        """
        if self.device == "cuda" and not torch.cuda.is_available():
            raise RecipeError(
                "execution.device: 'cuda' was asked for, but this machine has no CUDA device; use 'auto' or 'cpu'"
            )
        # is_available counts devices; it makes no CUDA context.
        automatic = "cuda" if torch.cuda.is_available() else "cpu"
        device = torch.device(automatic if self.device == "auto" else self.device)
        if device.type == "cpu" and self.precision == "fp16":
            raise RecipeError(
                "execution.precision: fp16 needs a CUDA device and this machine has none; use bf16 or fp32"
            )
        return device

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """fp16 on a CPU, and micro-batches whose rows do not divide the batch."""
        if self.precision == "fp16" and self.device == "cpu":
            yield Problem("execution.precision", "fp16 needs a CUDA device; use bf16 or fp32 on a CPU")
        size = self.micro_batch_size
        if size is None:
            return
        # The ends of a schedule stand for it: what lies between is rounded to whole micro-batches as it moves.
        for rows in sorted({recipe.data.fewest_rows, recipe.data.most_rows}):
            # A batch smaller than a micro-batch is one by itself, when a schedule begins or ends with it.
            if rows % size == 0 or (rows < size and rows != recipe.data.most_rows):
                continue
            # Divisors only: graphs are compiled for one shape, and equal parts let a mean of means be the mean.
            legal = [part for part in range(1, rows + 1) if rows % part == 0]
            shown = ", ".join(map(str, legal if len(legal) <= 12 else [*legal[:6], "...", *legal[-5:]]))
            yield Problem(
                "execution.micro_batch_size",
                f"{size} rows do not divide data.batch_size {rows}; use one of {shown}",
            )
