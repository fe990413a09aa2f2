"""Tickets: what a run takes, in whose name, and what a damaged file is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.launchers.queue.settings import physical_cores
from workbench.launchers.queue.ticket import Ticket, decoded, encoded, ticket_of
from workbench.store.folder import RunFolder, write_json

NewRun = Callable[..., RunFolder]


def test_a_run_takes_its_threads_or_what_torch_would(new_run: NewRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert ticket_of(new_run("a", threads=3)).threads == 3
    folder = new_run("b")
    for execution in ({"threads": None}, {}, {"threads": "2"}, "damaged"):
        write_json(folder.recipe, {"execution": execution})
        assert ticket_of(folder).threads == physical_cores()
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert ticket_of(folder).threads == 5


def test_a_run_of_before_there_was_a_queue_has_a_ticket(new_run: NewRun) -> None:
    folder = new_run("a")
    whole = ticket_of(folder)
    folder.needs.unlink()
    assert ticket_of(folder) == whole
    write_json(folder.needs, {"gpus": ["0", 1, "1"]})
    assert ticket_of(folder).gpus == ("0", "1")


def test_people_who_share_an_account_may_say_who_they_are(new_run: NewRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_OWNER", "ann\x1b[31m")
    assert ticket_of(new_run("a")).owner == "ann [31m"


def test_copied_runs_folders_hold_tickets_of_their_own() -> None:
    one, other = Ticket("/a/run-1"), Ticket("/b/run-1")
    assert one.file != other.file
    assert one.file.startswith("run-1-")


@given(st.builds(Ticket, folder=st.just("/runs/a"), name=st.text(), owner=st.text(), gpus=st.tuples(st.text())))
def test_a_file_holds_all_of_a_ticket(ticket: Ticket) -> None:
    assert decoded(encoded(ticket)) == replace(ticket, uid=-1, alive=True)


def test_a_ticket_of_an_earlier_version_is_read() -> None:
    fields = json.loads(encoded(Ticket("/runs/a", cores=2)))
    assert fields.pop("cores") == 2
    assert decoded(json.dumps(fields).encode()) == Ticket("/runs/a")


WHOLE = encoded(Ticket("/runs/a"))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"[" * 5000,
        b"\xff\xfe",
        WHOLE[:40],
        WHOLE.replace(b'"/runs/a"', b'"runs/a"'),
        WHOLE.replace(b'"gpus"', b'"gpu_"'),
        WHOLE.replace(b'"threads": 1', b'"threads": 0'),
        WHOLE.replace(b'"number": 0', b'"number": "0"'),
    ],
)
def test_a_damaged_file_is_no_ticket(data: bytes) -> None:
    assert decoded(WHOLE) is not None
    assert decoded(data) is None


def test_a_ticket_that_changes_needs_no_new_space() -> None:
    before = Ticket("/runs/a", name="x" * 48)
    after = replace(before, running=True, gpu="GPU-" + "0" * 36, priority=-1000, number=10**9)
    assert len(encoded(before)) == len(encoded(after))
    assert Path(before.folder).is_absolute()
