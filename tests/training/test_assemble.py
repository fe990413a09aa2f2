"""Recipe to torch objects: reproducible weights, the attention that was asked for, nothing counted twice."""

from __future__ import annotations

import pytest
import torch

from workbench.base.errors import DataError
from workbench.choices.data.tokens import PreparedData
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import assemble


def test_weights_are_a_function_of_the_seed_alone(tiny: Recipe, prepared: PreparedData) -> None:
    one = assemble(tiny, prepared).model.state_dict()
    torch.randn(17)  # whatever was drawn before must not matter
    same = assemble(tiny.with_(optimizer="lans", budget="7 steps"), prepared).model.state_dict()
    other = assemble(tiny.with_(seed=1), prepared).model.state_dict()
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["backbone.embedding.weight"], other["backbone.embedding.weight"])


def test_every_parameter_is_optimized_once_and_only_matrices_decay(tiny: Recipe, prepared: PreparedData) -> None:
    made = assemble(tiny.with_(optimizer={"weight_decay": 0.3}), prepared)
    held = [parameter for group in made.optimizer.param_groups for parameter in group["params"]]
    assert len({id(parameter) for parameter in held}) == len(held)
    assert sum(parameter.numel() for parameter in held) == made.parameters
    for group in made.optimizer.param_groups:
        assert len(group["names"]) == len(group["params"])
        for parameter in group["params"]:
            assert group["weight_decay"] == (0.3 if parameter.ndim >= 2 else 0.0)


def test_rows_longer_than_the_text_are_refused(tiny: Recipe, prepared: PreparedData) -> None:
    with pytest.raises(DataError, match=r"tokens do not fill one row of sequence_length 65,536"):
        assemble(tiny.with_(data={"sequence_length": 65_536}), prepared)
