"""Say where attention by documents cannot be had, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workbench.choices.choice import Problem
from workbench.ops.packed_attention import PACKED

ON_GPU = {
    "flex": "'flex' needs a CUDA device: FlexAttention has no backward pass on a CPU",
    "varlen": "'varlen' needs a CUDA device, whose kernel it is",
}
"""The reason why not on a CPU, by implementation."""
OTHERWISE = "use 'auto', 'plain' or 'sdpa'"
LEAST_HEAD = 16
"""Numbers of a head that FlexAttention's kernels take at least."""


def no_gpu(name: str) -> str:
    """Return why an implementation cannot be had on a CPU, and what to use instead."""
    return f"{ON_GPU[name]}; {OTHERWISE}"


def problems(recipe: Any) -> Iterator[Problem]:
    """Yield what stands in the way of the implementation that a ``Native`` recipe names, where it goes by documents."""
    asked, architecture = recipe.execution, recipe.architecture
    name, head_dim = asked.attention, architecture.width // architecture.heads
    if name not in PACKED:
        return
    reasons = []
    if why := architecture.needs_logits():
        reasons.append(f"'{name}' keeps no logits, and {why}")
    if name == "flex" and not (asked.compile and asked.compile_scope == "blocks"):
        reasons.append(
            "'flex' is one kernel only where blocks are compiled; switch execution.compile on, with "
            "execution.compile_scope 'blocks'"
        )
    if name == "flex" and head_dim < LEAST_HEAD:
        reasons.append(f"'flex' takes heads of at least {LEAST_HEAD} numbers, and these have {head_dim}")
    if PACKED[name].sixteen_bit and asked.precision not in ("bf16", "fp16"):
        reasons.append(f"'{name}' takes 16-bit numbers; set execution.precision to 'bf16'")
    objective = recipe.objective
    if objective.masks == "by_pair":
        reasons.append(f"'{name}' goes by documents, and objective '{objective.kind}' says who sees whom in them")
    if not PACKED[name].by_row and objective.masks == "by_row":
        reasons.append(f"'{name}' has one mask for a whole batch, and objective '{objective.kind}' one for every row")
    if name == "varlen" and asked.compile_scope == "graphs":
        reasons.append("'varlen' takes as many pieces as a batch has, and 'graphs' one shape")
    yield from (Problem("execution.attention", f"{reason}; {OTHERWISE}") for reason in reasons)
