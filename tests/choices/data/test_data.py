"""What every corpus has: a tokenizer, the shape of a batch, a cache folder that the user can move."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from workbench.choices.choice import registry
from workbench.choices.data.data import Data, cache_folder
from workbench.choices.data.embedded import Embedded


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"WORKBENCH_CACHE": "/somewhere", "XDG_CACHE_HOME": "/xdg"}, "/somewhere"),
        ({"WORKBENCH_CACHE": "", "XDG_CACHE_HOME": "/xdg"}, "/xdg/workbench"),
        ({"XDG_CACHE_HOME": None, "HOME": "/users/somebody"}, "/users/somebody/.cache/workbench"),
    ],
)
def test_the_first_variable_that_is_set_says_where_the_cache_is(
    variables: dict[str, str | None], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("WORKBENCH_CACHE", raising=False)
    for name, value in variables.items():
        if value is None:
            monkeypatch.delenv(name, raising=False)
        else:
            monkeypatch.setenv(name, value)
    assert cache_folder() == Path(expected)


@pytest.mark.parametrize(
    ("knob", "value"),
    [("sequence_length", 7), ("sequence_length", 65_537), ("batch_size", 0), ("heldout_fraction", 0.0),
     ("heldout_fraction", 1.0)],
)  # fmt: skip
def test_every_corpus_refuses_a_batch_that_cannot_be(knob: str, value: float) -> None:
    for kind, choice in registry("data").items():
        needed = {name: "x" for name, field in choice.model_fields.items() if field.is_required()}
        needed = {name: ("x",) if name == "paths" else text for name, text in needed.items()}
        with pytest.raises(ValidationError) as raised:
            choice(**needed, **{knob: value})
        assert [error["loc"] for error in raised.value.errors()] == [(knob,)], kind


def test_a_tokenizer_may_be_named_or_spelled_out() -> None:
    assert Embedded(tokenizer="trained") == Embedded(tokenizer={"kind": "trained"}) == Embedded()
    with pytest.raises(ValidationError, match="unknown value 'traned'; did you mean 'trained'"):
        Embedded(tokenizer="traned")


def test_a_corpus_without_a_heldout_set_of_its_own_leaves_the_split_to_the_rule() -> None:
    assert Embedded().heldout_documents() is None
    with pytest.raises(NotImplementedError):
        Data().documents()
