"""ZeRO: tensors are shared out evenly, and what cannot be shared is refused. Steps are compared in test_parallel.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tiny_runs import tiny_recipe
from workbench.base.errors import RecipeError
from workbench.choices.execution.parallel.sharding import largest_share, shares


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
