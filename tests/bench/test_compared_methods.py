"""The table of methods: each can be trained, and differs from its base in what it says."""

from __future__ import annotations

import pytest

from workbench.bench.compared_methods import all_methods, depth_and_optimizers, larger_base, small_base

SMALL = {name: changes for methods in all_methods(small_base()).values() for name, changes in methods.items()}
LARGER = {name: changes for methods in depth_and_optimizers().values() for name, changes in methods.items()}


def test_names_point_at_one_method() -> None:
    assert len(SMALL) == sum(map(len, all_methods(small_base()).values())) > 30


@pytest.mark.parametrize(("name", "changes"), SMALL.items(), ids=SMALL)
def test_every_method_differs_in_what_it_says_only(name: str, changes: dict[str, object]) -> None:
    base = small_base()
    changed = {path.split(".")[0] for path in base.diff(base.with_(**changes))}
    assert changed == {path.split(".")[0] for path in changes}


@pytest.mark.parametrize("name", LARGER)
def test_the_larger_base_takes_them(name: str) -> None:
    assert larger_base().diff(larger_base().with_(**LARGER[name]))
