"""Bytes that a recipe takes in training, by part: exact where shapes decide, traced where code does."""

from __future__ import annotations

import functools
from dataclasses import asdict, dataclass

import torch

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.architectures.flops import count_parameters
from workbench.choices.data.tokens import Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.objective import Objective
from workbench.choices.optimizers.optimizer import OptimizerChoice, parameter_groups
from workbench.training.trace import Trace, on_paper

PROCESS_BYTES = 75 << 20
"""What a trainer on a CPU grows by beside its model: kernels' scratch space, pages of the text, threads. Measured with
models of 2.6 million parameters and fewer (0.1 GiB in all), of which the parts below explain the rest."""


@dataclass(frozen=True)
class Footprint:
    """Bytes by part, each at its own largest.

    Attributes:
        weights: parameters, fp32.
        gradients: of those that train.
        optimizer: its state.
        activations: what the layers keep for the backward pass, copies of weights in low precision included.
        logits: what head and loss hold at most.
        peak: of all together. On a GPU less than their sum, since gradients take the place of activations; on a CPU
            the heap keeps what it once had, and :data:`PROCESS_BYTES` come on top.
    """

    weights: int
    gradients: int
    optimizer: int
    activations: int
    logits: int
    peak: int

    def to_dict(self) -> dict[str, int]:
        """The parts by name, bytes."""
        return asdict(self)


@dataclass(frozen=True)
class Sizes:
    """Numbers in a model's parameters.

    Attributes:
        parameters: all, tied ones once.
        by_layer: of each block.
        matrices: (numbers, smaller side) of the hidden matrices, those of equal sides together.
        tables: numbers in embeddings and output matrices.
        vectors: how many biases, norms and the like there are.
    """

    parameters: int
    by_layer: tuple[int, ...]
    matrices: tuple[tuple[int, int], ...]
    tables: int
    vectors: int


@functools.lru_cache(maxsize=64)
def sizes(architecture: Architecture, objective: Objective, vocabulary: Vocabulary, longest: int) -> Sizes:
    """The exact numbers of the model that would be built, by role; nothing is allocated.

    Args:
        architecture, objective: what to build.
        vocabulary: V rows of the embedding.
        longest: T, tokens per row.
    """
    model = on_paper(architecture, objective, vocabulary, longest)
    roles: dict[str, list[torch.Tensor]] = {"matrix": [], "embedding": [], "vector": []}
    for group in parameter_groups(model, 0.0):
        roles[group["role"]] += group["params"]
    matrices: dict[int, int] = {}
    for matrix in roles["matrix"]:
        matrices[min(matrix.shape)] = matrices.get(min(matrix.shape), 0) + matrix.numel()
    return Sizes(
        count_parameters(model),
        tuple(count_parameters(block) for block in model.backbone.blocks),
        tuple((numbers, side) for side, numbers in matrices.items()),
        sum(p.numel() for p in roles["embedding"]),
        len(roles["vector"]),
    )


@functools.lru_cache(maxsize=64)
def optimizer_bytes(
    choice: OptimizerChoice, architecture: Architecture, objective: Objective, vocabulary: Vocabulary, longest: int
) -> int:
    """Bytes of the optimizer's state once every parameter has had a gradient.

    The optimizer itself makes its state, for parameters without memory.

    Args:
        choice: the optimizer.
        architecture, objective, vocabulary, longest: as for :func:`sizes`.
    """
    device = torch.device("meta")
    model = on_paper(architecture, objective, vocabulary, longest)
    optimizer = choice.build(parameter_groups(model, 0.01), device)
    start = getattr(optimizer, "start", None)
    if start is not None:
        states = [start(p, group) for group in optimizer.param_groups for p in group["params"]]
    else:
        # torch's own optimizers make their state in the first step.
        for parameter in model.parameters():
            parameter.grad = torch.empty_like(parameter)
        optimizer.step()
        states = list(optimizer.state.values())
    tensors = [value for state in states for value in state.values() if isinstance(value, torch.Tensor)]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def footprint(
    found: Trace, size: Sizes, optimizer: int, plan: LayerPlan, parts: int, compiled: bool, heap: bool
) -> Footprint:
    """Bytes of a step.

    Args:
        found: of one micro-batch.
        size: of the model.
        optimizer: bytes of its state.
        plan: what every layer does; layers below the first that trains keep nothing.
        parts: micro-batches of the step.
        compiled: blocks keep what products read and write; the rest is computed again.
        heap: memory is a CPU's.
    """
    first = plan.trains.index(True) if True in plan.trains else plan.layers
    kept = [part.kept_products if compiled else part.kept for part in (*found.layers, found.last)]
    inner = sum(kept[:-1]) / max(1, len(kept) - 1)
    above = [layer for layer, run in enumerate(plan.runs) if run and layer >= first]
    activations = (inner * (len(above) - 1) + kept[-1] if above else 0) + (found.shared.kept if first == 0 else 0)
    logits = max(0, found.head_peak - found.kept_below_head)
    resting = sum(size.by_layer[layer] for layer in range(len(size.by_layer)) if not _trains(plan, layer))
    gradients = 4 * (size.parameters - resting)
    weights = 4 * size.parameters
    # Several micro-batches: the gradients of the first are there while the second runs.
    forward = activations + logits + (gradients if parts > 1 else 0)
    together = activations + logits + gradients + PROCESS_BYTES if heap else max(forward, gradients + inner)
    peak = weights + optimizer + together
    return Footprint(weights, gradients, optimizer, round(activations), round(logits), round(peak))


def _trains(plan: LayerPlan, layer: int) -> bool:
    return layer < plan.layers and plan.trains[layer]
