"""ZeRO: tensors are shared out evenly, and what cannot be shared is refused. Steps are compared in test_parallel.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from tests.process_group import ProcessGroup
from tests.tiny_runs import tiny_recipe
from workbench.base.errors import RecipeError
from workbench.choices.execution.parallel.sharding import largest_share, shares
from workbench.choices.execution.ranks import Ranks


@given(sizes=st.lists(st.integers(1, 10_000), min_size=1, max_size=40), processes=st.integers(1, 9))
def test_shares_are_even_up_to_the_largest_tensor(sizes: list[int], processes: int) -> None:
    owners = shares(sizes, processes)
    loads = [sum(n for n, own in zip(sizes, owners, strict=True) if own == rank) for rank in range(processes)]
    assert sum(loads) == sum(sizes)
    assert max(loads) == largest_share(sizes, processes) <= sum(sizes) / processes + max(sizes)


def test_a_step_that_needs_all_gradients_is_refused(corpus: Path) -> None:
    recipe = tiny_recipe(corpus).with_(optimizer="lamb", execution={"parallel": "zero"})
    with pytest.raises(RecipeError, match=r"execution\.parallel\.kind: 'zero' gives each process some of the tensors,"):
        recipe.check_together(2)
    recipe.with_(optimizer={"pre_normalise": False}).check_together(2)
    recipe.with_(execution={"parallel": "data"}).check_together(2)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"optimizer": "lans"},
            r"execution\.parallel\.stage: 3 cuts tensors, and 'lans' .*; use stage 2, or optimizer adamw",
        ),
        ({"execution": {"compile": True}}, r"execution\.compile: True is not for .*; use False, or stage 2"),
        ({"execution": {"micro_batch_size": "auto"}}, r"stage: 3 cannot measure what fits"),
    ],
)
def test_what_cannot_be_cut_is_refused(corpus: Path, changes: dict[str, object], why: str) -> None:
    recipe = tiny_recipe(corpus).with_(execution={"parallel": {"kind": "zero", "stage": 3}}).with_(**changes)
    with pytest.raises(RecipeError, match=why):
        recipe.check_together(2)
    recipe.with_(execution={"parallel": {"kind": "zero", "stage": 2}}).check_together(2)


def ratio(ranks: Ranks) -> float:
    """The gradient of FSDP2 over the sum of the processes' gradients, of one weight."""
    torch.manual_seed(0)
    model = nn.Linear(4, 6, bias=False)
    plain = nn.Linear(4, 6, bias=False)
    plain.load_state_dict(model.state_dict())
    fully_shard(model, mesh=init_device_mesh("cpu", (ranks.size,)))
    model(torch.full((1, 4), ranks.rank + 1.0)).sum().backward()
    for rank in range(ranks.size):
        plain(torch.full((1, 4), rank + 1.0)).sum().backward()
    return float((model.weight.grad.full_tensor() / plain.weight.grad).mean())  # type: ignore[union-attr, operator]


@pytest.mark.process
def test_fsdp2_averages_on_gloo() -> None:
    """Stage 3 makes sums of it; an older torch summed here, and set_gradient_divide_factor is NCCL's alone."""
    with ProcessGroup(2) as pair:
        assert pair(ratio) == [0.5, 0.5]
