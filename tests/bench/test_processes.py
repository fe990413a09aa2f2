"""The arms of the benchmark of two processes."""

from __future__ import annotations

from workbench.bench.processes import arms
from workbench.recipes import presets


def test_arms_differ_in_rows_alone() -> None:
    found = arms(presets.fast())
    assert {name: (recipe.data.batch_size, many) for name, (recipe, many) in found.items()} == {
        "one": (16, 1), "half": (8, 1), "two": (16, 2), "double": (32, 2),
    }  # fmt: skip
    assert {recipe.execution.threads for recipe, _ in found.values()} == {1}
