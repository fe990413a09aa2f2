"""AdaSum of optimizer steps against separate optimizers."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from tests.choices.optimizers.steps import gradients, parameters
from workbench.choices.choice import registry
from workbench.choices.execution.parallel.workers import WorkersOptimizer
from workbench.choices.execution.ranks import Ranks
from workbench.choices.optimizers import AdaSum

SHAPES = ((6, 4), (5,), (8, 8))


def slow_tree(moves: list[torch.Tensor]) -> torch.Tensor:
    """Neighbours first, by the formula in float64."""
    if len(moves) == 1:
        return moves[0]
    a, b = slow_tree(moves[: len(moves) // 2]), slow_tree(moves[len(moves) // 2 :])
    if not (a.any() and b.any()):
        return a + b
    dot = (a * b).sum()
    return a * (1 - dot / (2 * (a * a).sum())) + b * (1 - dot / (2 * (b * b).sum()))


@pytest.mark.parametrize("kind", registry("optimizer"))
def test_it_is_separate_optimizers_whose_moves_are_combined(kind: str) -> None:
    choice = registry("optimizer")[kind](lr=0.01)
    names = [f"weight{place}" for place in range(len(SHAPES))]
    held = parameters(SHAPES)[: len(SHAPES)]

    def groups(of: list[torch.nn.Parameter]) -> list[dict[str, Any]]:
        role = {"role": "matrix", "parts": 1, "transposed": False}
        found = [{"params": [each], "names": [name], **role} for each, name in zip(of, names, strict=True)]
        return [group | ({} if group["params"][0].ndim == 2 else {"role": "vector"}) for group in found]

    build = partial(choice.build, device=torch.device("cpu"))
    ours = WorkersOptimizer(build, groups(held), Ranks(), 4, AdaSum().pair)
    copies = [parameters(SHAPES)[: len(SHAPES)] for _ in range(4)]
    theirs = [build(groups(copy)) for copy in copies]
    for step in range(3):
        common = [weight.detach().clone() for weight in copies[0]]
        for worker in range(4):
            grads = gradients(held, 7 + 4 * step + worker)
            for weight, twin, grad in zip(held, copies[worker], grads, strict=True):
                weight.grad, twin.grad = grad.clone(), grad.clone()  # type: ignore[union-attr]
            theirs[worker].step()
            ours.put_by() if worker < 3 else ours.step()
        for place, old in enumerate(common):
            move = slow_tree([(copy[place].detach() - old).double() for copy in copies])
            for copy in copies:
                copy[place].data.copy_(old + move)
    for weight, expected in zip(held, copies[0], strict=True):
        torch.testing.assert_close(weight, expected, atol=1e-6, rtol=1e-5)
