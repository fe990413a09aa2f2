"""AdamW by torch's own defaults."""

from __future__ import annotations

import inspect
from copy import deepcopy

import torch
from torch import nn

from workbench.choices.choice import readable, registry
from workbench.choices.optimizers import TorchAdamW, parameter_groups
from workbench.choices.progress import Budget, Progress
from workbench.recipes.recipe import Recipe


def test_its_defaults_are_those_of_torch() -> None:
    torchs = {name: each.default for name, each in inspect.signature(torch.optim.AdamW).parameters.items()}
    ours = TorchAdamW()
    assert (ours.lr, (ours.beta1, ours.beta2), ours.eps, ours.weight_decay) == tuple(
        torchs[name] for name in ("lr", "betas", "eps", "weight_decay")
    )
    assert ours.clip_norm is None


def test_its_steps_are_those_of_torch_on_norms_and_biases_too() -> None:
    torch.manual_seed(0)
    ours = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 1))
    theirs, choice = deepcopy(ours), TorchAdamW(weight_decay=0.5)
    first = choice.build(parameter_groups(ours, 0.5), torch.device("cpu"))
    second = torch.optim.AdamW(theirs.parameters(), weight_decay=0.5)
    for step in range(30):
        now = Progress(step, 0, 0.0, Budget(amount=30, unit="steps"))
        said = choice.apply(first, now, choice.lr_at(now))
        assert said == {"lr": 1e-3, "weight_decay": 0.5}, "constant"
        x = torch.randn(16, 4)
        for model, optimizer in ((ours, first), (theirs, second)):
            optimizer.zero_grad()
            model(x).square().mean().backward()
            optimizer.step()
    for mine, yours in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, yours, rtol=0, atol=1e-7)


def test_it_is_read_with_a_recipe_and_not_offered() -> None:
    recipe = Recipe(optimizer={"kind": "torch_adamw", "lr": 3e-4})
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert "torch_adamw" in readable("optimizer")
    assert "torch_adamw" not in registry("optimizer")
