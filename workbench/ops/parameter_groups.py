"""Group a model's parameters by what an optimizer does with them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

STACKED = {"qkv": 3, "Wqkv": 3, "c_attn": 3}
"""Modules, by their last name, whose weight is that many matrices stacked along the outputs: (3D, D) for queries, keys
and values of our own blocks, ModernBERT's and GPT-2's. GPT-NeoX's ``query_key_value`` alternates between them head by
head, so it is no such stack and stays whole."""


def parameter_groups(
    model: nn.Module, weight_decay: float, hidden: Sequence[nn.Module] | None = None
) -> list[dict[str, Any]]:
    """Return parameters by role; everything of two or more dimensions decays, vectors do not; tied tensors count once.

    * ``matrix``: the 2-D weights in ``hidden`` that no embedding owns: what Muon orthogonalises and SOAP preconditions.
    * ``embedding``: token and position tables (also those inside a block), output matrices, whatever else stands
      outside the blocks, and shapes that are no matrix to speak of: one row, one column, three dimensions.
    * ``vector``: biases, norms, single numbers.

    Matrices that are stored differently have a group of their own, so that a group is uniform: ``parts`` says how many
    matrices of equal shape are stacked along the outputs (:data:`STACKED`), ``transposed`` that the weight is
    (inputs, outputs), as in transformers' Conv1D, instead of torch's (outputs, inputs).

    Args:
        model: its parameters of any shape; frozen ones are included, since they may train later.
        weight_decay: of the groups that decay.
        hidden: modules whose matrices are hidden ones, the blocks of a stack; None for the whole model.

    Returns:
        ``[{"params", "names", "weight_decay", "decays", "role", "parts", "transposed"}, ...]``, empty groups left
        out, always in the same order; ``names`` run parallel to ``params`` so that checkpoints and telemetry can
        speak of parameters by name.
    """
    inside = {id(parameter) for each in (hidden or [model]) for parameter in each.parameters()}
    # By tensor rather than by name: an output matrix tied to a table is the table.
    tables = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    groups: dict[tuple[str, int, bool], dict[str, Any]] = {}
    for name, parameter in model.named_parameters():
        role = "vector" if parameter.ndim < 2 else "embedding"
        parts, transposed = 1, False
        is_matrix = parameter.ndim == 2 and min(parameter.shape) > 1
        if is_matrix and id(parameter) in inside and id(parameter) not in tables:
            owner, role = name.rpartition(".")[0], "matrix"
            # By the class's name, because importing transformers takes seconds.
            transposed = type(model.get_submodule(owner)).__name__ == "Conv1D"
            outputs, inputs = parameter.shape[::-1] if transposed else parameter.shape
            stacked = STACKED.get(owner.rpartition(".")[2], 1)
            # Fewer heads for keys than for queries: the parts are not of one shape, and where one ends is unknown.
            parts = stacked if outputs == stacked * inputs else 1
        group = groups.setdefault(
            (role, parts, transposed),
            {
                "params": [], "names": [], "weight_decay": 0.0 if role == "vector" else weight_decay,
                "decays": role != "vector", "role": role, "parts": parts, "transposed": transposed,
            },
        )  # fmt: skip
        group["params"].append(parameter)
        group["names"].append(name)
    order = ("matrix", "embedding", "vector")
    return [groups[key] for key in sorted(groups, key=lambda key: (order.index(key[0]), *key[1:]))]
