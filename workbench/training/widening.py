"""A trained model's weights in a wider model that computes the same function.

Every axis that is longer in the wide model is made of copies of the narrow one: k copies of all heads, of the residual
stream, of the inner width. What writes such an axis repeats its weights, what reads it (the input side of a matrix
product) divides them between the copies. Norms see the same mean and variance over repeated entries. A matrix of logits
that is tied to the embedding reads k copies undivided, so the norm before it takes a factor 1 / k.

Sources: Chen et al. 2016 (Net2Net, arXiv 1511.05641), section 2; Chen et al. 2022 (bert2BERT, arXiv 2110.07143),
function-preserving initialisation. We depart from both in how weights are divided: unevenly and element by element.
Equal shares give the copies equal gradients and they stay copies for ever; shares in proportion give proportional
gradients, which every optimizer that normalises (Adam and its kin) makes equal again.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from workbench.base.errors import RecipeError
from workbench.choices.architectures.feed_forward import FeedForward
from workbench.choices.architectures.self_attention import SelfAttention
from workbench.choices.objectives.objective import TrainingModel

# Shape legend: O outputs and I inputs of a product, k copies.

UNEVEN = 0.5
"""Shares of k copies are drawn within (1 -+ UNEVEN) / k before they are made to add up to one."""

Places = tuple[Tensor, ...]
"""For every axis of a wide tensor, int64: which entry of the narrow one each of its entries is a copy of."""


@torch.no_grad()
def widen(narrow: TrainingModel, wide: TrainingModel, seed: int) -> list[tuple[Tensor, Tensor, Places | None]]:
    """Overwrite the weights of ``wide`` so that it computes what ``narrow`` computes, to rounding.

    Args:
        wide: the same architecture with k times the width and the heads; inner widths may be any longer ones.

    Returns:
        (wide parameter, narrow parameter, places) of every pair, as :func:`copy_state` takes them.
    """
    generator = torch.Generator().manual_seed(seed)
    sources, owners = dict(narrow.named_parameters()), dict(wide.named_modules())
    pairs: list[tuple[Tensor, Tensor, Places | None]] = []
    for name, target in wide.named_parameters():
        source, owner = sources[name], owners[name.rpartition(".")[0]]
        grandparent = owners[name.rpartition(".")[0].rpartition(".")[0]]
        places = tuple(
            _copies(old, new, _parts(grandparent, owner) if axis == 0 else 1).to(target.device)
            for axis, (old, new) in enumerate(zip(source.shape, target.shape, strict=True))
        )
        target.copy_(_repeat(source, places))
        if isinstance(owner, nn.Linear) and target.ndim == 2 and source.shape[1] != target.shape[1]:
            target.mul_(_shares(places[1], target.shape[0], source.shape[1], generator))
        pairs.append((target, source, places))
    copies = wide.backbone.embedding.weight.shape[1] / narrow.backbone.embedding.weight.shape[1]
    if copies != 1:
        for parameter in _before_logits(wide).parameters(recurse=False):
            parameter.div_(copies)
    return pairs


def copy_state(
    old: torch.optim.Optimizer, new: torch.optim.Optimizer, pairs: Iterable[tuple[Tensor, Tensor, Places | None]]
) -> None:
    """Give parameters of ``new`` copies of what ``old`` keeps for others (the two may be one optimizer).

    A moment is repeated like its weight, undivided: Adam's step m / sqrt(v) does not depend on the common scale. A
    parameter whose state holds anything of another shape (row sums, preconditioners) starts afresh.

    Args:
        old, new: optimizers.
        pairs: (parameter of ``new``, parameter of ``old``, places or None for equal shapes).
    """
    for target, source, places in pairs:
        state = old.state.get(source, {})
        tensors = [value for value in state.values() if isinstance(value, Tensor) and value.ndim]
        if places is not None and any(tensor.shape != source.shape for tensor in tensors):
            new.state.pop(target, None)
            continue
        for key, value in state.items():
            if not isinstance(value, Tensor):
                new.state[target][key] = value
            elif places is None or value.ndim == 0:
                new.state[target][key] = value.clone()
            else:
                new.state[target][key] = _repeat(value, places).contiguous()
        if not state:
            new.state.pop(target, None)


def _copies(old: int, new: int, parts: int) -> Tensor:
    """Return index of the entry that each of ``new`` entries copies,
    for an axis made of ``parts`` pieces laid end to end.
    """
    if new < old or old % parts or new % parts:
        raise RecipeError(f"an axis of {old} cannot grow to {new}; choose depth.factor so that every width grows")
    within = torch.arange(new // parts) % (old // parts)
    return torch.cat([part * (old // parts) + within for part in range(parts)])


def _parts(parent: nn.Module, owner: nn.Module) -> int:
    """Return pieces that lie end to end on the output axis: queries, keys and values; gate and value."""
    if isinstance(parent, SelfAttention) and owner is parent.qkv:
        return 3
    return 2 if isinstance(parent, FeedForward) and parent.gated and owner is parent.up else 1


def _repeat(values: Tensor, places: Places) -> Tensor:
    for axis, index in enumerate(places):
        if len(index) != values.shape[axis]:
            values = values.index_select(axis, index.to(values.device))
    return values


def _shares(places_I: Tensor, outputs: int, narrow_inputs: int, generator: torch.Generator) -> Tensor:
    """Return (O, I) positive shares that add up to one over the copies of an input, for each output by itself."""
    # Drawn on the CPU: a GPU's generator gives other numbers for the same seed.
    drawn_OI = 1 + UNEVEN * (2 * torch.rand((outputs, len(places_I)), generator=generator) - 1)
    drawn_OI = drawn_OI.to(places_I.device)
    sums_OI = torch.zeros((outputs, narrow_inputs), device=places_I.device).index_add_(1, places_I, drawn_OI)
    return drawn_OI / sums_OI[:, places_I]


def _before_logits(model: TrainingModel) -> nn.Module:
    """Return the module whose output the matrix of logits reads: the head's norm, the final norm,
    or the last block's.
    """
    head, backbone = getattr(model, "head", None), model.backbone
    for module in (
        getattr(head, "norm", None), getattr(backbone, "final", None),
        getattr(backbone.blocks[-1], "feed_forward_norm", None),
    ):  # fmt: skip
        if module is not None and any(True for _ in module.parameters(recurse=False)):
            return module
    raise RecipeError("depth.kind: a model without a norm before its logits cannot grow in width; use another method")
