"""Useful floating-point operations of a training step: the numerator of MFU, and what the forecast multiplies.

Counted: every matrix product that the step's mathematics needs, for real tokens, once. Not counted: embedding
look-ups, norms and activations, recomputation, padding. See :func:`step_flops` for the formula.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.depth.plan import LayerPlan

# Shape legend: B rows, T positions.


def attention_span(documents_BT: Tensor) -> float:
    """Return s_eff = sum(s_i^2) / sum(s_i) over document pieces: positions that a position sees, on average.

    A causal model is counted as if it saw both sides, as published MFU figures do.

    Args:
        documents_BT: (B, T) int piece indices of packed rows (pass the CPU copy: on a GPU this waits for the device).

    Example:
        >>> attention_span(torch.tensor([[0, 0, 0, 1]]))
        2.5
    """
    # Numbered across the batch: piece 0 of one row must not be counted together with piece 0 of the next.
    rows = torch.arange(documents_BT.shape[0], device=documents_BT.device)[:, None]
    piece_BT = rows * (documents_BT.max().long() + 1) + documents_BT.long()
    sizes = torch.bincount(piece_BT.flatten()).double()
    return float(sizes.square().sum() / sizes.sum())


def layer_flops(architecture: Architecture, plan: LayerPlan, span: float, tail_share: float = 1.0) -> list[float]:
    """Return FLOPs per token of each of the plan's layers, forward and backward.

    A layer with N matmul parameters and width d costs 6 N + 12 d s_eff when it trains: 2 N + 4 d s_eff forward, as
    much again for the gradient of its input, as much again for that of its weights. A frozen layer below the first
    training one costs the forward part; one above it passes gradients on and saves the weights' 2 N only. A layer
    that does not run costs nothing. A layer that sees a window only has a span of its own.

    Args:
        architecture: gives N and d, and the span of each layer.
        tail_share: share of the tokens for which the last running layer computes what follows the mixing of positions.
    """
    width, total, mixing = architecture.width, architecture.block_parameters(), architecture.mixing_parameters()
    first = plan.trains.index(True) if True in plan.trains else plan.layers
    # The deepest layer that runs, not the deepest there is: that one may be dropped.
    last = max((layer for layer, run in enumerate(plan.runs) if run), default=-1)
    flops = []
    for layer, (runs, trains) in enumerate(zip(plan.runs, plan.trains, strict=True)):
        # Per parameter and token 2 each for the forward pass, the gradient of the input, the gradient of the weights.
        passes = 6 if trains else (4 if layer > first else 2)
        parameters = mixing + (total - mixing) * (tail_share if layer == last else 1.0)
        seen = architecture.layer_span(layer, span)
        flops.append(runs * (passes * parameters + (4 if layer < first else 12) * width * seen))
    return flops


def head_flops(architecture: Architecture, vocabulary_size: int, plan: LayerPlan | None = None) -> float:
    """Return FLOPs per label of the head (D, D), (D, V), both passes: 6 (d^2 + d V), without d^2 for a linear head.

    Args:
        vocabulary_size: V, rows of the output matrix.
        plan: says whether embedding and head train; a matrix that rests saves the 2 of its weights' gradient.
    """
    numbers, matrix = architecture.head_parameters(vocabulary_size), architecture.width * vocabulary_size
    resting = 0
    if plan is not None:
        resting += matrix if not (plan.embedding if getattr(architecture, "tied", True) else plan.head) else 0
        resting += numbers - matrix if not plan.head else 0
    return 6.0 * numbers - 2.0 * resting


def step_flops(
    architecture: Architecture,
    vocabulary_size: int,
    plans: Sequence[LayerPlan],
    tokens: int,
    labelled: int,
    span: float,
    length: int = 0,
) -> float:
    """Return useful FLOPs of one optimizer step.

    tokens * sum_layers (6 N + 12 d s_eff) + labelled * 6 (d^2 + d V) + what layers share, once per micro-batch; with
    frozen and dropped layers as in :func:`layer_flops`. Unlabelled positions of the last layer need no output product
    and no feed-forward part, and the stack computes none, so they are not counted either: MFU says what the hardware
    did.

    Args:
        vocabulary_size: V, rows of the output matrix.
        plans: one per micro-batch; the tokens are split evenly between them.
        tokens: real tokens of the step.
        labelled: positions with a label.
        length: T, tokens per row; matters to positions with logits of their own (TUPE).
    """
    share = labelled / tokens
    per_token = sum(sum(layer_flops(architecture, plan, span, share)) for plan in plans) / len(plans)
    # Forward, and twice as much backward unless every layer is frozen.
    shared = sum(3 if True in plan.trains else 1 for plan in plans) * architecture.shared_flops(length)
    per_label = sum(head_flops(architecture, vocabulary_size, plan) for plan in plans) / len(plans)
    return tokens * per_token + labelled * per_label + shared


def count_parameters(module: nn.Module) -> int:
    """Return numbers in ``module``'s parameters, shared ones once."""
    return sum(parameter.numel() for parameter in module.parameters())
