"""Bytes that a recipe takes in training, by part: exact where shapes decide, traced where code does."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import torch

from workbench.choices.architectures.flops import count_parameters
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution import WHOLE, MemoryPlan
from workbench.choices.execution.low_weights import FEW
from workbench.choices.execution.memory_fit import LOOSE
from workbench.choices.objectives.objective import TrainingModel
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.forecasting.meta_tensors import ModelSpec, meta_model
from workbench.forecasting.operations import Trace
from workbench.forecasting.trace import shortened

PROCESS_BYTES = 50 << 20
"""Bytes by which a trainer on a CPU grows beside its model: kernels' scratch space, pages of the text, threads.
What the smallest models took beyond their parts: 51 and 52 MiB of 103 and 119."""
COMPILER_BYTES = 90 << 20
"""Bytes that the compiler leaves in the heap of the trainer's own process on a CPU: 80 to 105 MiB beyond the parts of a
recipe in six of eight, 50 to 80 where there are logits at every position; it differs by 30 MiB from run to run."""


@dataclass(frozen=True)
class Footprint:
    """Bytes by part, each at its own largest.

    Attributes:
        weights: parameters, fp32, and notes.
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


@dataclass(frozen=True)
class Sizes:
    """Numbers in a model's parameters.

    Attributes:
        parameters: all, tied ones once.
        by_layer: of each block.
        matrices: (numbers, smaller side) of the hidden matrices, those of equal sides together.
        tables: numbers in embeddings and output matrices.
        vectors: how many biases, norms and the like there are.
        notes: bytes of what the model keeps beside its weights.
    """

    parameters: int
    by_layer: tuple[int, ...]
    matrices: tuple[tuple[int, int], ...]
    tables: int
    vectors: int
    notes: int = 0


@functools.lru_cache(maxsize=64)
def sizes(spec: ModelSpec) -> Sizes:
    """Return the exact numbers of the model that would be built, by role; nothing is allocated."""
    model, times, twins = _short_model(spec)
    roles: dict[str, list[torch.Tensor]] = {"matrix": [], "embedding": [], "vector": []}
    for group in model.parameter_groups(0.0):
        roles[group["role"]] += group["params"]
    matrices: dict[int, int] = {}
    for matrix in roles["matrix"]:
        side = min(matrix.shape)
        matrices[side] = matrices.get(side, 0) + matrix.numel() * times[id(matrix)]
    blocks = [count_parameters(block) for block in model.stacks()["main"].blocks]
    return Sizes(
        sum(p.numel() * times[id(p)] for p in model.parameters()),
        tuple(blocks[twin] for twin in twins),
        tuple((numbers, side) for side, numbers in matrices.items()),
        sum(p.numel() for p in roles["embedding"]),
        sum(times[id(p)] for p in roles["vector"]),
        sum(buffer.nbytes for buffer in model.buffers()) if spec.architecture.keeps_notes() else 0,
    )


def trained_numbers(spec: ModelSpec) -> list[int]:
    """Return numbers in each parameter that trains."""
    model, times, _ = _short_model(spec)
    return [p.numel() for p in model.parameters() if p.requires_grad for _ in range(times[id(p)])]


def _short_model(spec: ModelSpec) -> tuple[TrainingModel, dict[int, int], tuple[int, ...]]:
    """Return a shallow model, how often each of its parameters stands in the deep one, by its id,
    and the twins of layers.
    """
    small, _, twins, _ = shortened(spec.architecture)
    model = meta_model(spec._replace(architecture=small))
    if len(model.stacks()) > 1:
        # Another network may be as deep as main: only the whole model tells its sizes.
        layers = spec.architecture.layers
        model = meta_model(spec._replace(architecture=small.model_copy(update={"layers": layers})))
        twins = tuple(range(layers))
    times = dict.fromkeys(map(id, model.parameters()), 1)
    for layer, block in enumerate(model.stacks()["main"].blocks):
        times |= dict.fromkeys(map(id, block.parameters()), twins.count(layer))
    return model, times, twins


@functools.lru_cache(maxsize=64)
def optimizer_bytes(choice: OptimizerChoice, spec: ModelSpec, memory: MemoryPlan = WHOLE) -> int:
    """Return bytes of the optimizer's state and the weights' average between two steps,
    once every parameter has a gradient.

    The optimizer itself makes its state, for parameters without memory; ``memory`` says how moments are held.
    """
    model, times, _ = _short_model(spec)
    averages = sum(4 * times[id(p)] * p.numel() for p in model.parameters()) if choice.average else 0
    optimizer = choice.build(model.parameter_groups(0.01), torch.device("meta"))
    start = getattr(optimizer, "start", None)

    def saved(parameter: torch.Tensor, moments: int) -> int:
        return moments * (4 * parameter.numel() - memory.moment_bytes(parameter.numel()))

    if start is None:
        fixed, per_number = _state_of_one(choice)
        moments = len(choice.moments)
        return averages + sum(
            times[id(p)] * (fixed + per_number * p.numel() - saved(p, moments)) for p in model.parameters()
        )
    total = averages
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            state = start(parameter, group)
            whole = sum(tensor.numel() * tensor.element_size() for tensor in state.values())
            total += times[id(parameter)] * (whole - saved(parameter, len(state.keys() & set(choice.moments))))
    return total


@functools.lru_cache(maxsize=64)
def _state_of_one(choice: OptimizerChoice) -> tuple[int, int]:
    """Return bytes of state per parameter, and per number in it, of one of torch's own optimizers:
    found by taking a step.
    """
    sizes_of = []
    for numbers in (1, 2):
        parameter = torch.nn.Parameter(torch.zeros(numbers, 8))
        parameter.grad = torch.zeros_like(parameter)
        group = {"params": [parameter], "names": ["one"], "weight_decay": 0.0, "role": "matrix"}
        optimizer = choice.build([group], torch.device("cpu"))
        optimizer.step()
        tensors = [value for value in optimizer.state[parameter].values() if isinstance(value, torch.Tensor)]
        sizes_of.append(sum(tensor.numel() * tensor.element_size() for tensor in tensors))
    one, two = sizes_of
    return 2 * one - two, (two - one) // 8


def footprint(
    found: Trace,
    size: Sizes,
    optimizer: int,
    plan: LayerPlan,
    parts: int,
    compiled: bool,
    heap: bool,
    moving: bool = False,
    memory: MemoryPlan = WHOLE,
    stream: int = 0,
) -> Footprint:
    """Return bytes of a step.

    Args:
        plan: what every layer does; layers below the first that trains keep nothing.
        parts: micro-batches of the step.
        compiled: blocks keep what products read and write; the rest is computed again.
        heap: memory is a CPU's.
        moving: numbers of rows, tokens or labels change from step to step.
        memory: which layers keep their input alone, and in what precision weights and gradients are.
        stream: bytes of a layer's input.
    """
    first = plan.trains.index(True) if True in plan.trains else plan.layers
    kept = [part.kept_products if compiled else part.kept for part in (*found.layers, found.last)]
    above = [layer for layer, run in enumerate(plan.runs) if run and layer >= first]
    whole = {layer: kept[-1 if layer == above[-1] else found.sorts[layer]] for layer in above}
    again = [layer for layer in above if memory.recomputes(layer)]
    activations = sum(stream if layer in again else whole[layer] for layer in above)
    # A layer that is computed again is there as a whole while it goes backward.
    activations += max((whole[layer] for layer in again), default=0)
    activations += found.shared.kept if first == 0 else 0
    # Compiled, the loss is computed in passes over one copy of the logits, which their gradient replaces.
    logits = found.head.kept if compiled else max(0, found.head_peak - found.kept_below_head)
    resting = sum(size.by_layer[layer] for layer in range(len(size.by_layer)) if not _trains(plan, layer))
    gradients = 4 * (size.parameters - resting)
    weights = 4 * size.parameters + size.notes
    passed = gradients
    if memory.weights == "bf16":
        matrices = sum(numbers for numbers, _ in size.matrices)
        # The copies are kept between passes, instead of one for every pass; gradients of few passes are narrow.
        weights += 2 * (matrices + size.tables)
        activations = max(0, activations - 2 * matrices)
        passed = max(0, gradients - 2 * (matrices + size.tables)) if parts <= FEW else gradients
    # Several micro-batches: the gradients of the first are there while the second runs.
    forward = activations + logits + (passed if parts > 1 else 0)
    # Sizes that move leave gaps: under a mask rate from 30% to 15%, 8 layers x 64 took 86 MiB at first and 172 after
    # 40 steps, 103 with a steady rate; 4 x 256 went from 137 to 279 within 16.
    alive = (activations + logits) * (2.0 if moving else LOOSE)
    on_heap = max(alive + passed, gradients) + PROCESS_BYTES + (COMPILER_BYTES if compiled else 0)
    peak = weights + optimizer + (on_heap if heap else max(forward, passed + max(kept), gradients))
    return Footprint(weights, gradients, optimizer, round(activations), round(logits), round(peak))


def _trains(plan: LayerPlan, layer: int) -> bool:
    return layer < plan.layers and plan.trains[layer]
