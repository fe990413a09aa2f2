"""Memory of each of two processes under every way of parallel training, beside the formula of its card.

Counted are the bytes of all tensors that hold weights, gradients and optimizer states when the optimizer is about to
step, a storage once. Activations, buckets and the program itself are not.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from torch import Tensor

from workbench.bench.harness import recipe_of
from workbench.bench.processes import together
from workbench.bench.table import Options
from workbench.choices.data.prepare import prepare
from workbench.choices.execution.parallel.sharding import largest_share
from workbench.choices.execution.ranks import Ranks
from workbench.recipes.recipe import Recipe
from workbench.training.assemble import assemble
from workbench.training.loop import Training

SIZE = 2
ARMS: Mapping[str, Mapping[str, Any]] = {
    "data": {"kind": "data"}, **{f"zero {stage}": {"kind": "zero", "stage": stage} for stage in (1, 2, 3)},
    "tensor": {"kind": "tensor"},
}  # fmt: skip


def computed(arm: str, sizes: Mapping[str, int], moments: int, processes: int) -> float:
    """Return the bytes of the process with most, by the card of the way.

    Args:
        sizes: numbers of each weight by name. moments: of the optimizer, float32.
    """
    every, share = sum(sizes.values()), largest_share(list(sizes.values()), processes)
    cut = sum(n for name, n in sizes.items() if ".attention." in name or ".feed_forward." in name)
    per_number = 4.0 * (2 + moments)
    return {
        "data": per_number * every,
        "zero 1": 8.0 * every + 4.0 * moments * share,
        "zero 2": 4.0 * every + 4.0 * (1 + moments) * share,
        "zero 3": per_number * every / processes,
        "tensor": per_number * (every - cut + cut / processes),
    }[arm]


def held(tensors: Iterable[Tensor | None]) -> int:
    """Return the bytes of the storages behind tensors of any shapes, each once."""
    storages = {
        each.untyped_storage().data_ptr(): each.untyped_storage().nbytes() for each in tensors if each is not None
    }
    return sum(storages.values())


def trained(ranks: Ranks, recipe: Recipe, steps: int) -> dict[str, Any]:
    """Train some steps as one of ``ranks``; return the bytes held at the last one, and the weights' sizes."""
    engine = recipe.engine()
    engine.join(ranks)
    made = assemble(recipe, prepare(recipe.data, say=lambda line: None), engine)
    sizes = {name: weight.numel() for name, weight in made.model.named_parameters()}
    training = Training(recipe, made)
    found: dict[str, int] = {}
    step: Callable[..., None] = engine.step

    def weighed(optimizer: Any) -> None:
        weights = list(made.model.parameters())
        states = [value for state in optimizer.state.values() for value in state.values() if isinstance(value, Tensor)]
        found.update(weights=held(weights), gradients=held(weight.grad for weight in weights), states=held(states))
        step(optimizer)

    engine.step = weighed  # type: ignore[method-assign]
    if ranks.rank == 0:
        for _ in range(steps):
            training.step()
        ranks.dismiss()
    else:
        ranks.follow(training)
    training.close()
    return {"held": found, "sizes": sizes, "moments": len(recipe.optimizer.moments)}


def measured(options: Options) -> dict[str, Any]:
    """Measure what the options ask for."""
    recipe = recipe_of(options).with_(execution={"threads": 1, "compile": False, "layers_every": 1_000_000})
    arms = {}
    for arm, parallel in ARMS.items():
        text = recipe.with_(execution={"parallel": parallel}).to_json()
        command = ["-m", "workbench.bench.parallel_memory", text, str(options.steps)]
        answers = [json.loads(output.splitlines()[-1]) for output in together(command)]
        expected = computed(arm, answers[0]["sizes"], answers[0]["moments"], SIZE)
        most = max(sum(each["held"].values()) for each in answers)
        arms[arm] = {
            "computed_mib": expected / 2**20, "measured_mib": most / 2**20, "error": most / expected - 1,
            "ranks": [each["held"] for each in answers],
        }  # fmt: skip
    return {"recipe": recipe.to_dict(), "processes": SIZE, "arms": arms}


if __name__ == "__main__":
    import torch

    torch.set_num_threads(1)
    rank = int(sys.argv[3])
    answer = trained(Ranks.join(rank, SIZE), Recipe(**json.loads(sys.argv[1])), int(sys.argv[2]))
    print(json.dumps(answer))
