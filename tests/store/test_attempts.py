"""What the events of a run say of attempts that could not tell how they ended."""

from __future__ import annotations

import os

import pytest

from tests.run_folders import write_records
from workbench.launchers.create import begin
from workbench.store.attempts import lost_event, tell_attempt
from workbench.store.folder import RunFolder
from workbench.store.state import read_state, take_lock, write_state
from workbench.telemetry.streams import read_events


def test_a_lost_attempt_is_told_when_the_next_one_begins(folder: RunFolder) -> None:
    write_state(folder, status="running", step=5, heartbeat=1767323045.0)
    write_records(folder, step=7)
    os.close(begin(folder, attempt=2))
    lost, begun = read_events(folder.telemetry)
    assert (lost["step"], lost["kind"]) == (7, "error")
    assert lost["text"] == (
        "attempt 1 was lost at step 7: all of its processes ended without saying why; last sign of life "
        "2026-01-02 03:04:05 UTC"
    )
    assert (begun["step"], begun["kind"]) == (0, "attempt")
    assert begun["text"] == "attempt 2 begins; no checkpoint was saved: starting again from step 0"


@pytest.mark.parametrize("status", ["failed", "stopped"])
def test_an_attempt_that_told_its_end_is_not_told_again(folder: RunFolder, status: str) -> None:
    write_state(folder, status=status, attempt=3)
    tell_attempt(folder, read_state(folder))
    assert [event["kind"] for event in read_events(folder.telemetry)] == ["attempt"]


def test_only_a_lost_run_has_a_lost_attempt(folder: RunFolder) -> None:
    write_state(folder, status="running")
    lock = take_lock(folder)
    assert lost_event(folder, read_state(folder)) is None
    os.close(lock)
    found = lost_event(folder, read_state(folder))
    assert found is not None
    assert found["text"] == "attempt 1 was lost at step 0: all of its processes ended without saying why"
