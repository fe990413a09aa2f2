"""Layer activity as numbers: stages, columns, work; each against the slow, obvious reference."""

from __future__ import annotations

import numpy as np
import pytest

from workbench.choices.depth.plan import LayerPlan, Transition
from workbench.plots.activity import (
    ABSENT,
    COPIED,
    DROPPED,
    FROZEN,
    GROWN,
    RUNNING,
    boundary_labels,
    chosen_columns,
    column_edges,
    matrix,
    opening_quantity,
    sentence,
    sentences,
    stage_starts,
    stages,
    state_codes,
    work,
)
from workbench.telemetry.streams import TelemetryWriter, read_telemetry
from workbench.training.stage_event import StageShape, stage_event


def _event(step: int, stage: int, stages: int, copies: object = (), text: str = "...") -> dict[str, object]:
    data = {"stage": stage, "stages": stages, "copies": copies if isinstance(copies, str) else list(copies)}
    return {"kind": "stage", "step": step, "text": text, "data": data}


def test_stages_are_read_from_what_the_run_announced():
    one, two, three = stages(
        [
            _event(0, 1, 3),
            {"kind": "knob", "step": 3, "data": {"stage": 9, "stages": 9}},
            _event(40, 2, 3, [[3, 1], [4, 2]]),
            _event(80, 3, 3, [[7, 4]]),
        ]
    )
    assert (one.label, one.number, one.copies) == ("stage 1 of 3", "1", {})
    assert (two.step, two.copies) == (40, {3: 1, 4: 2})
    assert three.copies == {7: 4}


def test_what_the_trainer_writes_is_understood(tmp_path):
    plan, now = LayerPlan.full(8, 12), StageShape(1, 8, (True,) * 8, True, True, 64, 4, 256)
    writer = TelemetryWriter(tmp_path)
    for sources in ((0, 1, 2, 0, 1), (None,) * 5):
        transition = Transition(3, sources, silent=True)
        text, data = stage_event(plan, transition, 3, None, now)
        writer.event(5, "stage", text, **data)
    writer.close()
    stage, fresh = stages(read_telemetry(tmp_path).events)
    assert (stage.label, stage.text.partition(":")[0]) == ("stage 2 of 3", "stage 2 of 3")
    assert stage.copies == {4: 1, 5: 2, 6: 3, 7: 1, 8: 2}
    assert fresh.copies == {}


def test_a_stage_of_its_own_is_named_by_its_words():
    (one,) = stages([_event(7, 1, 1, text="everything thaws: all layers train from here on")])
    assert (one.label, one.number) == ("everything thaws: all la", "")
    assert stages([{"kind": "stage", "step": 1}])[0].label == ""


def test_runs_of_before_have_their_stages_and_damage_is_passed_over():
    # Then the numbers stood among the event's own keys, and copies in its words alone.
    old = {"kind": "stage", "step": 9, "text": "stage 2 of 2: layer 2 added as a copy of 1", "stage": 2, "stages": 2}
    assert (stages([old])[0].label, stages([old])[0].copies) == ("stage 2 of 2", {})
    for copies in ("[[1", [[1]], [1, 2], [["1", 2]]):
        assert stages([_event(1, 1, 2, copies)])[0].copies == {}
    assert stages([old | {"data": "[", "stage": "x"}])[0].number == ""


def test_a_model_that_grows_has_shorter_records_first():
    values_LK = matrix([{"state": [0]}, {"state": [2, None, 5]}], "state")
    np.testing.assert_array_equal(state_codes(values_LK), [[RUNNING, FROZEN], [ABSENT, ABSENT], [ABSENT, COPIED]])
    assert state_codes(np.array([[99.0, -1.0]])).tolist() == [[ABSENT, ABSENT]], "a code from the future"


def test_skipping_starts_no_stage_but_growing_and_freezing_do():
    codes_LK = np.array([[0, 1, 0, 2, 2], [0, 0, 1, 1, 0], [3, 3, 3, 3, 4]])
    assert stage_starts(codes_LK).tolist() == [True, False, False, True, True]


@pytest.mark.parametrize("most", [20, 50, 400])
def test_thinning_keeps_both_ends_of_the_shortest_stage(most):
    starts_K = np.zeros(5000, bool)
    starts_K[[0, 1234, 1235, 4321]] = True
    kept = chosen_columns(starts_K, most)
    assert {0, 1233, 1234, 1235, 4320, 4321, 4999} <= set(kept.tolist())
    assert len(kept) <= most
    assert np.diff(kept).max() <= 2 * 5000 / (most - 8) + 1, "the rest is spread evenly"


def test_thinning_of_few_columns_and_of_many_stages():
    assert chosen_columns(np.ones(5, bool), 10).tolist() == [0, 1, 2, 3, 4]
    restless = chosen_columns(np.ones(1000, bool), 10)
    assert len(restless) <= 10
    assert {0, 999} <= set(restless.tolist())


def test_a_record_speaks_for_the_stretch_before_it_and_a_stage_parts_two():
    assert column_edges([10, 20, 30], []).tolist() == [0, 10, 20, 30]
    assert column_edges([11, 21, 31], [25]).tolist() == [1, 11, 25, 31]
    assert column_edges([11, 21, 31], [21]).tolist() == [1, 11, 21, 31], "after 21 steps: with the next one"
    assert column_edges([5], [0, 99]).tolist() == [4, 5]
    assert column_edges([], [1]).tolist() == [0]


def _records() -> list[dict[str, object]]:
    return [
        {"step": 10, "state": [0, 1, 3], "ran": [1.0, 0.25, None]},
        {"step": 20, "state": [2, 0, 3], "ran": [1.0, 0.5, None]},
        {"step": 40, "state": [2, 1, 3], "ran": [1.0, 0.75, None]},
    ]


def test_work_counts_micro_batches_and_leaves_frozen_layers_their_forward_pass():
    done = work(_records())
    # The second record begins a stage (layer 1 froze), so its counts mix two stages: the states are taken there.
    np.testing.assert_allclose(done.forward_LK, [[1, 1, 1], [0, 1, 0.75], [0, 0, 0]])
    np.testing.assert_allclose(done.trained_LK, [[1, 0, 0], [0, 1, 0.75], [0, 0, 0]])
    np.testing.assert_allclose(done.forward, [1, (10 + 20 * 0.75) / 40, 0])
    np.testing.assert_allclose(done.trained, [0.25, (10 + 20 * 0.75) / 40, 0])
    both = (10 + 20 * 0.75) / 40
    assert done.share == pytest.approx((1 + 2 * 0.25 + 3 * both) / 9)
    assert "On average 1.6 of 3 layers ran forward and 0.9 backward" in done.summary()


def test_work_of_full_training_is_everything():
    done = work([{"step": step, "state": [0, 0, 4]} for step in (1, 2, 2, 9)])
    assert done.share == pytest.approx(1)


def test_sentences_name_the_layer_that_a_copy_came_from():
    found = stages([_event(10, 2, 3, [[2, 1]]), _event(20, 3, 3, [[3, 1], [4, 2]])])
    codes_LK = np.array([[0, 1], [5, 0], [3, 5], [3, 5]])
    said = sentences(codes_LK, [11, 21], found)
    assert said[1] == ["started as a copy of layer 1", "runs and trains"]
    assert said[3] == ["does not exist yet", "started as a copy of layer 2"]
    assert said[0][1].startswith("is skipped this time")
    assert sentence(COPIED, 2, {}) == "started as a copy of a lower layer"
    assert len({sentence(code, 1, {}) for code in (RUNNING, DROPPED, FROZEN, ABSENT, GROWN, COPIED)}) == 6


def test_boundaries_are_named_where_there_is_room():
    labels = [f"stage {i} of 4" for i in (1, 2, 3, 4)]
    found = stages([_event(0, i, 4) for i in (1, 2, 3, 4)])
    assert boundary_labels(found, [0, 25, 50, 75], (0, 100)) == labels
    assert boundary_labels(found, [0, 50, 55, 56], (0, 100)) == ["stage 1 of 4", "2", "3", ""]
    assert boundary_labels(found, [0, 5, 9, 20], (0, 100)) == ["1", "2", "stage 3 of 4", "stage 4 of 4"]
    alone = stages([_event(0, 1, 1, text=text) for text in ("1-3 frozen", "1-4 frozen")])
    assert boundary_labels(alone[:1], [3], (3, 3)) == ["1-3 frozen"]
    assert boundary_labels(alone, [50, 51], (0, 100)) == ["", "1-4 frozen"]


@pytest.mark.parametrize(
    ("records", "quantity"),
    [
        ([{"state": [0, 0], "update_ratio": [1e-3, 2e-3]}], "update_ratio"),
        ([{"state": [0, 0], "update_ratio": [1e-3, 2e-3]}, {"state": [0, 1]}], "state"),
        ([{"state": [0, 0], "update_ratio": [None, None]}], "state"),
        ([], "state"),
    ],
    ids=["all run all the time", "one is dropped", "nothing else is known", "nothing yet"],
)
def test_a_picture_opens_on_what_moves(records, quantity):
    assert opening_quantity(records) == quantity
