"""What every corpus has: a tokenizer, the shape of a batch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from workbench.choices.choice import registry
from workbench.choices.data.embedded import Embedded
from workbench.choices.progress import Budget, Progress


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
        # A knob that moves is checked with the whole choice, and names itself.
        (error,) = raised.value.errors()
        assert (error["loc"] or (error["ctx"]["name"],)) == (knob,), kind


def test_a_tokenizer_may_be_named_or_spelled_out() -> None:
    assert Embedded(tokenizer="trained") == Embedded(tokenizer={"kind": "trained"}) == Embedded()
    with pytest.raises(ValidationError, match="unknown value 'traned'; did you mean 'trained'"):
        Embedded(tokenizer="traned")


def _progress(step: int) -> Progress:
    return Progress(step, 0, 0.0, Budget(amount=100))


def test_plain_numbers_stay_what_they_are() -> None:
    data = Embedded(sequence_length=100, batch_size=12)
    assert (data.length_at(_progress(3)), data.rows_at(_progress(3))) == (100, 12)
    assert (data.longest, data.most_rows, data.fewest_rows) == (100, 12, 12)
    assert data.model_dump(mode="json")["batch_size"] == 12
    assert Embedded(batch_size=12.0).batch_size == 12


@pytest.mark.parametrize("value", [32.5, "many", [32], True, None])
def test_a_batch_is_a_whole_number_or_a_schedule(value: object) -> None:
    with pytest.raises(ValueError, match=r"must be a whole number.*or a schedule|must be a number, got true"):
        Embedded(batch_size=value)  # type: ignore[arg-type]


def test_lengths_are_rounded_down_to_the_step_and_end_exactly() -> None:
    ramp = Embedded(sequence_length={"kind": "linear", "start": 30, "end": 100})
    assert [ramp.length_at(_progress(step)) for step in (0, 50, 99, 100)] == [24, 64, 96, 96]
    assert ramp.longest == 96
    coarse = Embedded(sequence_length={"kind": "linear", "start": 24, "end": 512}, length_step=64)
    lengths = [coarse.length_at(_progress(step)) for step in range(101)]
    # A row shorter than the step is rounded to eights instead of to nothing.
    assert lengths[0] == 24
    assert {length for length in lengths if length >= 64} == set(range(64, 513, 64))
    assert lengths[-1] == coarse.longest == 512
    # Half a cosine passes through 511.99999999999994 on its way to 512.
    curve = Embedded(sequence_length={"kind": "cosine", "start": 8, "end": 512})
    assert curve.length_at(_progress(100)) == curve.longest == 512


@given(start=st.floats(8, 4096), end=st.floats(8, 4096), step=st.integers(0, 100), of=st.sampled_from([8, 16, 64, 512]))
def test_no_row_is_longer_than_the_longest_or_shorter_than_eight(start: float, end: float, step: int, of: int) -> None:
    data = Embedded(sequence_length={"kind": "linear", "start": start, "end": end}, length_step=of)
    length = data.length_at(_progress(step))
    assert 8 <= length <= data.longest
    assert length % 8 == 0


def test_rows_are_rounded_to_the_nearest() -> None:
    data = Embedded(batch_size={"kind": "linear", "start": 3, "end": 8})
    assert [data.rows_at(_progress(step)) for step in (0, 10, 50, 100)] == [3, 4, 6, 8]
    assert (data.fewest_rows, data.most_rows) == (3, 8)
    with pytest.raises(ValueError, match="must be >= 1"):
        Embedded(batch_size={"kind": "warmup_hold_decay", "peak": 8})
