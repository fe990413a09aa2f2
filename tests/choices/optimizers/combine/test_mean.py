"""One step for the whole batch: the recipe of before."""

from __future__ import annotations

import torch

from workbench.choices.optimizers import Mean
from workbench.recipes.recipe import Recipe


def test_it_is_the_default_and_does_not_change_a_hash() -> None:
    assert Recipe().optimizer.combine == Mean()
    assert Mean().count == 1
    assert Recipe(optimizer={"kind": "adamw", "combine": "mean"}).hash == Recipe().hash
    assert torch.equal(Mean().pair([torch.ones(2)], [torch.full((2,), 3.0)])[0], torch.full((2,), 2.0))
