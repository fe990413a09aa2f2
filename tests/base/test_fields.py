"""Fields as JSON has them: paths, equality, and what several sets of them do not share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from workbench import presets
from workbench.base.fields import at, differences, flatten, put, same

LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, "a", "1"])
FIELDS = st.recursive(
    LEAVES, lambda inner: st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3), max_leaves=8
)


def slow(fields: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(fields, Mapping):
        return {}
    found: dict[str, Any] = {}
    for key, value in fields.items():
        found |= slow(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return found


@given(FIELDS)
def test_flat_fields_hold_every_value_in_order(fields: Any) -> None:
    assert list(flatten(fields).items()) == list(slow(fields).items())
    for path, value in flatten(fields).items():
        assert at(fields, path) is value


def test_what_is_nested_deeper_than_the_stack_is_flat_too() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = {"a": deep}
    assert list(flatten(deep).values()) == [1]


@given(FIELDS, FIELDS)
def test_differences_are_the_paths_whose_values_are_not_the_same(one: Any, other: Any) -> None:
    here, there = flatten(one), flatten(other)
    paths = here.keys() | there.keys()
    expected = {path: [here.get(path), there.get(path)] for path in paths if not same(here.get(path), there.get(path))}
    assert differences([here, there]) == expected
    assert differences([here, here]) == differences([here]) == {}


def test_putting_leaves_the_original_alone() -> None:
    fields, before = presets.get("fast").to_dict(), presets.get("fast").to_dict()
    assert put(fields, "data.tokenizer.vocabulary_size", 1)["data"]["tokenizer"]["vocabulary_size"] == 1
    assert fields == before
    assert at(fields, "optimizer.lr.nothing") is None


def test_same() -> None:
    assert same({"a": [1, 2.0]}, {"a": (1.0, 2)})
    assert not same(True, 1)
    assert not same({"a": 1}, {"a": 1, "b": 2})
    assert not same(None, 0)
