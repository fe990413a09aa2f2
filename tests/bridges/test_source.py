from __future__ import annotations

import json
from pathlib import Path

from tests.bridges.conftest import BEGAN, Recorded, loss_at
from workbench.bridges.source import Kept, Source, flat
from workbench.telemetry.streams import stream_path


def test_a_row_per_step_without_what_was_taken_back(recorded: Recorded) -> None:
    recorded.finish()
    ended, rows = Source(recorded.folder).rows()
    found = list(rows)
    assert ended
    assert [row.step for row in found] == list(range(1, 16))
    assert all(row.values["loss"] == loss_at(row.step) for row in found if row.step != 7)
    tenth = found[9]
    assert tenth.time - BEGAN == 5.0, "of the step, not of its evaluation"
    assert tenth.values == {
        "seconds": 5.0, "tokens": 2560, "loss": 9.0, "flops": 1e7, "heldout_loss": 9.0,
        "layer_grad_norm/00": 0.5, "layer_grad_norm/02": 2.5,
    }  # fmt: skip


def test_a_running_run_is_read_up_to_a_step_that_all_streams_have(recorded: Recorded) -> None:
    source = Source(recorded.folder)
    ended, rows = source.rows()
    assert not ended
    assert [row.step for row in rows] == list(range(1, 16))
    recorded.steps(16, 20)
    assert [row.step for row in source.rows()[1]] == list(range(16, 21))
    assert source.rewound is None
    recorded.steps(19, 20, rewind=18)
    assert [row.step for row in source.rows()[1]] == [19, 20]
    assert source.rewound == 18


def test_many_rewinds_and_small_pieces_leave_what_a_dictionary_leaves(tmp_path: Path) -> None:
    records: list[dict[str, int]] = []
    slow: dict[int, int] = {}
    at = 0
    for attempt, back in enumerate((0, 7, 3, 9, 9, 0, 5)):
        records.append({"rewind": back})
        slow = {step: value for step, value in slow.items() if step <= back}
        for at in range(back + 1, back + 9):
            records.append({"step": at, "value": attempt})
            slow[at] = attempt
    path = stream_path(tmp_path, "scalars")
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert {record["step"]: record["value"] for record in Kept(path, piece=100).new()} == slow


def test_knobs_by_path() -> None:
    assert flat({"a": {"b": [1, 2], "c": None}, "d": True}) == {"a.b": "[1, 2]", "a.c": "", "d": True}
