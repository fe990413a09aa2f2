"""Columns of scalars: late names, missing numbers, rewinds, FLOPs that not every record tells."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.telemetry.columns import Columns, rising


def record(step: int, **values: object) -> dict:
    return {"seq": step, "step": step, "seconds": step / 2, "tokens": 100 * step, **values}


def test_a_late_name_is_nan_before_and_a_missing_one_in_its_record() -> None:
    columns = Columns()
    columns.extend([record(1, loss=9.0), record(2, loss=8.0), record(2, heldout_loss="inf"), record(3, loss=None)])
    assert columns.names == ["loss", "heldout_loss"]
    np.testing.assert_array_equal(columns.values("loss"), np.array([9, 8, np.nan, np.nan], np.float32))
    np.testing.assert_array_equal(columns.values("heldout_loss"), np.array([np.nan, np.nan, np.inf, np.nan]))
    assert columns.clock("step").tolist() == [1, 2, 2, 3]
    assert columns.clock("tokens").tolist() == [100, 200, 200, 300]


def test_a_name_that_never_had_a_number_is_none() -> None:
    columns = Columns()
    columns.extend([record(1, loss=1.0, grad_norm=None), record(2, loss=1.0, grad_norm=None)])
    assert columns.names == ["loss"]


def test_flops_stand_still_where_a_record_does_not_tell_them() -> None:
    columns = Columns()
    columns.extend([record(1, heldout_loss=9.0)])
    columns.extend([record(2, flops=10.0, loss=9.0), record(2, heldout_loss=9.0), record(3, flops=30.0, loss=8.0)])
    np.testing.assert_array_equal(columns.clock("flops"), [np.nan, 10, 10, 30])
    assert "flops" not in columns.names


def test_rewinds_within_and_between_reads() -> None:
    columns = Columns()
    assert not columns.extend([record(step, loss=float(step)) for step in range(1, 6)])
    assert columns.extend([record(6, loss=6.0), {"seq": 7, "rewind": 2}, record(3, loss=33.0)])
    assert columns.clock("step").tolist() == [1, 2, 3]
    assert columns.values("loss").tolist() == [1.0, 2.0, 33.0]


def test_what_is_no_number_is_no_curve() -> None:
    columns = Columns()
    columns.extend([record(1, loss="nan", grad_norm=1e300, note="words", parts=[1, 2])])
    assert math.isnan(columns.values("loss")[0])
    assert columns.values("grad_norm")[0] == np.inf
    assert math.isnan(columns.values("note")[0])


@given(
    st.lists(
        st.tuples(st.dictionaries(st.sampled_from("abcd"), st.none() | st.floats(-1e6, 1e6)), st.integers(0, 9)),
        max_size=60,
    ),
    st.integers(1, 20),
)
def test_columns_hold_what_was_said(spoken: list, piece: int) -> None:
    """Whatever was read together: as one dict after the other, the obvious way."""
    records: list[dict] = []
    step = 0
    for values, kind in spoken:
        if kind == 9:
            records.append({"rewind": step // 2})
            step //= 2
        else:
            step += 1
            records.append(record(step, **values))
    columns = Columns()
    for start in range(0, len(records), piece):
        columns.extend(json.loads(json.dumps(records[start : start + piece])))
    expected: list[dict] = []
    for one in records:
        if "rewind" in one:
            expected = [kept for kept in expected if kept["step"] <= one["rewind"]]
        else:
            expected.append(one)
    assert columns.clock("step").tolist() == [one["step"] for one in expected]
    for name in columns.names:
        wanted = [math.nan if one.get(name) is None else one[name] for one in expected]
        np.testing.assert_array_equal(columns.values(name), np.array(wanted, np.float32))
    said = {name for one in expected for name in "abcd" if one.get(name) is not None}
    assert said <= set(columns.names)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_samples_rise(count: int) -> None:
    samples = [{"step": step} for step in range(count)]
    assert rising(samples) == samples


def test_samples_of_what_was_taken_back_are_left_out() -> None:
    samples = [{"step": 1}, {"step": 5}, {"step": 9}, {"rewind": 4}, {"step": 6}, {"step": 8}]
    assert [one["step"] for one in rising(samples)] == [1, 6, 8]
    assert [one["step"] for one in rising([{"step": 5}, {"step": 7}, {"step": 2}, {"step": 3}])] == [2, 3]
