"""Recipe to torch objects: reproducible weights, the attention that was asked for, nothing counted twice."""

from __future__ import annotations

import pytest
import torch

from workbench.choices.data.tokens import PreparedData
from workbench.errors import DataError
from workbench.recipe import Recipe
from workbench.training.assemble import assemble, choose, micro_batch_size

CPU = torch.device("cpu")


def test_weights_are_a_function_of_the_seed_alone(tiny: Recipe, prepared: PreparedData) -> None:
    one = assemble(tiny, prepared, CPU).model.state_dict()
    torch.randn(17)  # whatever was drawn before must not matter
    same = assemble(tiny.with_(optimizer="lans", budget="7 steps"), prepared, CPU).model.state_dict()
    other = assemble(tiny.with_(seed=1), prepared, CPU).model.state_dict()
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not torch.equal(one["backbone.embedding.weight"], other["backbone.embedding.weight"])


def test_every_parameter_is_optimized_once_and_only_matrices_decay(tiny: Recipe, prepared: PreparedData) -> None:
    made = assemble(tiny.with_(optimizer={"weight_decay": 0.3}), prepared, CPU)
    held = [parameter for group in made.optimizer.param_groups for parameter in group["params"]]
    assert len({id(parameter) for parameter in held}) == len(held)
    assert sum(parameter.numel() for parameter in held) == made.parameters
    for group in made.optimizer.param_groups:
        assert len(group["names"]) == len(group["params"])
        for parameter in group["params"]:
            assert group["weight_decay"] == (0.3 if parameter.ndim >= 2 else 0.0)


def test_attention_is_the_one_asked_for_or_a_measured_one(tiny: Recipe) -> None:
    assert choose(tiny.with_(execution={"attention": "sdpa"}), CPU, torch.float32) == "sdpa"
    assert choose(tiny.with_(execution={"attention": "auto"}), CPU, torch.float32) in ("plain", "sdpa")


def test_autocast_is_off_in_full_precision(tiny: Recipe, prepared: PreparedData) -> None:
    product = torch.ones(2, 2)
    with assemble(tiny, prepared, CPU).autocast():
        assert (product @ product).dtype == torch.float32
    with assemble(tiny.with_(execution={"precision": "bf16"}), prepared, CPU).autocast():
        assert (product @ product).dtype == torch.bfloat16


def test_rows_per_forward_pass(tiny: Recipe) -> None:
    assert micro_batch_size(tiny) == 16
    assert micro_batch_size(tiny.with_(execution={"micro_batch_size": 4})) == 4


def test_rows_longer_than_the_text_are_refused(tiny: Recipe, prepared: PreparedData) -> None:
    with pytest.raises(DataError, match=r"tokens do not fill one row of sequence_length 65,536"):
        assemble(tiny.with_(data={"sequence_length": 65_536}), prepared, CPU)
