"""Find the fastest implementation of attention, measured in a layer of the recipe's own architecture.

Not by itself: between contiguous tensors sdpa won on an AMD EPYC in cases in which whole runs were 1.2 to 1.35 times as
fast with plain, whose softmax is compiled into its neighbours (LOG.md, 2026-11-22).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.architectures.self_attention import SelfAttention
from workbench.choices.architectures.stack import Stack
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.ops.attention import ATTENTION
from workbench.ops.compiled_cache import mending
from workbench.ops.remembered import Benchmark, subject_of
from workbench.ops.timing import Sample, timed

# Shape legend: B rows, T positions, D width.

MOST_POSITIONS = {"cpu": 1 << 13, "cuda": 1 << 16}
"""Tokens of the rows on which they are measured, at most: the ranking depends on the length, hardly on the rows."""
_VOCABULARY = Vocabulary(64, 64, 1, 2, 3, 0, 4)


def attention_benchmark(
    architecture: Architecture,
    device: torch.device,
    precision: str,
    dtype: torch.dtype,
    rows: int,
    length: int,
    *,
    causal: bool,
    compiled: bool,
) -> Benchmark:
    """Return one forward and backward pass with every implementation, side by side.

    Args:
        architecture: of the model; one of its layers is built.
        device: where it will run.
        precision, dtype: of products, by name and as autocast takes it.
        rows, length: B and T of a micro-batch.
        causal: whether the mask is causal as well.
        compiled: as blocks will be; takes seconds while the compiler's cache is cold.
    """
    rows = max(1, min(rows, MOST_POSITIONS[device.type] // length))
    layer = architecture.model_copy(update={"layers": 1})
    shape = {name: value for name, value in layer.model_dump(mode="json").items() if name not in ("layers", "head")}
    subject = subject_of(
        device, precision=precision, shape_BT=[rows, length], causal=causal, compiled=compiled, layer=shape, version=2
    )

    def samples() -> dict[str, Sample]:
        with _forked(device):
            torch.manual_seed(0)
            return {
                name: timed(_passes(layer, name, device, dtype, (rows, length), causal, compiled), device)
                for name in ATTENTION
            }

    return Benchmark("attention", subject, tuple(ATTENTION), samples)


def _forked(device: torch.device) -> AbstractContextManager[None]:
    """Inside, random numbers are drawn that leave no trace: weights follow from the seed, probed or not."""
    return torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])


def _passes(
    layer: Architecture, name: str, device: torch.device, dtype: torch.dtype, shape_BT: tuple[int, int], causal: bool,
    compiled: bool,
) -> Callable[[], Any]:  # fmt: skip
    """Return a forward and a backward pass with the implementation of that name."""
    rows, length = shape_BT
    backbone = layer.build(_VOCABULARY, length, causal=causal, attention=name).to(device)
    places_T = torch.arange(length, device=device)
    tokens_BT = torch.full((rows, length), 5, device=device)
    # Two documents per row, so that the mask is a real one.
    documents_BT = (places_T >= length // 2).int().expand(rows, length)
    batch = Batch(tokens_BT, places_T.expand(rows, length), documents_BT, tokens_BT[:, 0])
    plan = LayerPlan.full(1)
    x_BTD = torch.randn(rows, length, layer.width, device=device, requires_grad=True)
    gradient_BTD = torch.randn(rows, length, layer.width, device=device)

    def autocast() -> torch.autocast:
        return torch.autocast(device.type, dtype, enabled=dtype != torch.float32)

    attention = getattr(backbone.blocks[0], "attention", None)
    if isinstance(backbone, Stack) and isinstance(attention, SelfAttention):
        # A function of its own: the run's blocks share their compiled graphs and a limit on how many they may be.
        def mixed(context: Any) -> Tensor:
            return attention(x_BTD, context)

        layer_pass = torch.compile(mixed, dynamic=False) if compiled else mixed

        def forward() -> Tensor:
            # In every pass: terms of positions that layers share have weights, and a graph goes backward once.
            return layer_pass(backbone.context(tokens_BT, batch))

    else:
        # Models of others run as they are.
        def forward() -> Tensor:
            return backbone(tokens_BT, batch, plan)

    def work() -> None:
        with _forked(device), autocast():
            found_BTD = forward()
        found_BTD.backward(gradient_BTD.to(found_BTD.dtype))
        backbone.zero_grad(set_to_none=True)
        x_BTD.grad = None

    if compiled:
        mending(work)
    return work
