"""Rows of a table that stays open: what changed is seen, what did not is not read, nothing torn is kept."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from tests.run_folders import write_records
from workbench.client import listing
from workbench.client.listing import Listing, columns_of
from workbench.store.control import write_knobs
from workbench.store.effective_knobs import flat
from workbench.store.folder import RunFolder, write_json
from workbench.store.labels import label
from workbench.store.state import take_lock, write_state
from workbench.store.trash import delete


def make(root: Path, number: int, status: str = "finished", **recipe: Any) -> RunFolder:
    """A run as its trainer left it a while ago."""
    folder = RunFolder(root / f"20260101-{number:06d}-run-abcdef-0000")
    folder.path.mkdir(parents=True)
    write_json(folder.recipe, {"name": f"run {number}", **recipe})
    write_state(folder, status=status, step=number)
    settle(folder)
    return folder


def settle(folder: RunFolder, seconds: float = 60) -> None:
    """As if nothing in the folder had changed for that long."""
    then = time.time() - seconds
    os.utime(folder.path, (then, then))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the runs that are read, not only looked at."""
    ids: list[str] = []
    summary = listing.summary
    monkeypatch.setattr(listing, "summary", lambda folder, state=None: ids.append(folder.id) or summary(folder, state))
    return ids


@pytest.fixture
def never_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """No run is read again without a reason."""
    monkeypatch.setattr(listing, "_AGAIN", 1_000_000)


@pytest.mark.usefixtures("never_again")
def test_only_what_changed_is_read(tmp_path: Path, read: list[str]) -> None:
    folders = [make(tmp_path, number) for number in range(5)]
    lister = Listing(tmp_path)
    assert not lister.warm
    assert [row["step"] for row in lister.look().rows] == [4, 3, 2, 1, 0]
    assert lister.warm
    read.clear()
    lister.look()
    assert read == []
    label(folders[2], add=["good"])
    write_state(folders[3], step=30)
    make(tmp_path, 7)
    found = lister.look()
    assert sorted(read) == sorted([folders[2].id, folders[3].id, "20260101-000007-run-abcdef-0000"])
    assert [(row["step"], row["tags"]) for row in found.rows][:4] == [(7, []), (4, []), (30, []), (2, ["good"])]


@pytest.mark.usefixtures("never_again")
def test_what_changed_just_now_may_change_again_within_the_same_tick(tmp_path: Path, read: list[str]) -> None:
    folder = make(tmp_path, 1)
    settle(folder, 0)
    lister = Listing(tmp_path)
    lister.look()
    before = os.stat(folder.path)
    write_state(folder, step=99)
    # A file system with a coarse clock gives both changes one time.
    os.utime(folder.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert lister.look().rows[0]["step"] == 99
    assert len(read) == 2


@pytest.mark.usefixtures("never_again")
def test_a_state_that_was_seen_in_part_is_read_again(tmp_path: Path) -> None:
    folder = make(tmp_path, 1)
    whole = folder.state.read_bytes()
    folder.state.write_bytes(whole[:20])
    settle(folder)
    lister = Listing(tmp_path)
    assert lister.look().rows[0]["status"] == "lost"
    before = os.stat(folder.path)
    folder.state.write_bytes(whole)
    os.utime(folder.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert lister.look().rows[0]["status"] == "finished"


def test_a_file_edited_in_place_is_seen_within_some_looks(tmp_path: Path) -> None:
    folder = make(tmp_path, 1)
    lister = Listing(tmp_path)
    lister.look()
    state = json.loads(folder.state.read_text())
    folder.state.write_text(json.dumps(state | {"step": 5}))
    settle(folder)
    assert 5 in [lister.look().rows[0]["step"] for _ in range(listing._AGAIN + 1)]


@pytest.mark.usefixtures("never_again")
def test_a_run_whose_processes_die_is_lost_although_no_file_changes(tmp_path: Path, read: list[str]) -> None:
    folder = make(tmp_path, 1, status="running")
    lock = take_lock(folder)
    write_records(folder, step=7)
    settle(folder)
    lister = Listing(tmp_path)
    assert lister.look().rows[0]["status"] == "running"
    read.clear()
    os.close(lock)
    row = lister.look().rows[0]
    assert (row["status"], row["step"]) == ("lost", 7), "what it recorded last, not what its state still says"
    assert read == []


def test_deleted_runs_leave_the_rows_and_are_counted(tmp_path: Path) -> None:
    kept, gone = make(tmp_path, 1), make(tmp_path, 2)
    lister = Listing(tmp_path)
    assert (lister.look().total, lister.look().trashed) == (2, 0)
    delete(gone)
    found = lister.look()
    assert ([row["id"] for row in found.rows], found.total, found.trashed) == ([kept.id], 1, 1)
    assert [row["id"] for row in lister.trash()] == [gone.id]
    shutil.rmtree(tmp_path)
    assert (lister.look().rows, lister.look().total) == ([], 0)


def test_more_than_are_shown_are_counted_and_the_newest_are_shown(tmp_path: Path) -> None:
    for number in range(7):
        make(tmp_path, number)
    make(tmp_path, 9).path.rename(tmp_path / "zzz-by-hand")
    found = Listing(tmp_path).look(most=5)
    assert ([row["step"] for row in found.rows], found.total) == ([6, 5, 4, 3, 2], 8)
    assert {row["id"] for row in Listing(tmp_path).look().rows} >= {"zzz-by-hand"}


def test_what_can_not_be_read_is_no_reason_to_show_nothing(tmp_path: Path) -> None:
    make(tmp_path, 1).recipe.write_bytes(b"\xff{")
    make(tmp_path, 2).state.unlink()
    (tmp_path / "notes.txt").write_text("no run")
    rows = Listing(tmp_path).look().rows
    assert [row["status"] for row in rows] == ["lost", "finished"]
    assert rows[1]["name"] == rows[1]["id"]
    assert Listing(tmp_path / "gone").look().rows == []
    (tmp_path / "file").write_text("")
    assert Listing(tmp_path / "file").look().rows == []


def test_a_thousand_runs_are_cheap_to_look_at_again(tmp_path: Path) -> None:
    for number in range(1000):
        folder = RunFolder(tmp_path / f"20260101-{number:06d}-run-abcdef-0000")
        folder.path.mkdir()
        folder.recipe.write_text('{"name": "a"}')
        folder.state.write_text('{"status": "finished"}')
        settle(folder)
    lister = Listing(tmp_path)
    lister.look()
    began = time.process_time()
    lister.look()
    # Reading them takes several times as long; a ratio in one process would be no surer than this is lenient.
    assert time.process_time() - began < 0.25


def test_knobs_are_told_once_where_they_are_the_same(tmp_path: Path) -> None:
    one = make(tmp_path, 1, optimizer={"kind": "adamw", "lr": 0.1}, data={"paths": ["a"]}, seed=True)
    two = make(tmp_path, 2, optimizer={"kind": "adamw", "lr": 0.2, "eps": 1e-8}, data={"paths": ["a"]}, seed=1)
    found = Listing(tmp_path).knobs([one.id, two.id, "gone"])
    assert found["runs"] == [one.id, two.id, "gone"]
    assert found["differ"]["optimizer.lr"] == [0.1, 0.2, None]
    found = Listing(tmp_path).knobs([one.id, two.id])
    assert found["same"] == {"data.paths": "['a']", "optimizer.kind": "adamw"}
    assert found["differ"]["optimizer.eps"] == [None, 1e-8]
    assert found["differ"]["seed"] == [True, 1], "1 is not yes"


def test_a_steered_knob_has_the_value_in_force_also_in_the_trash(tmp_path: Path) -> None:
    steered, always = (make(tmp_path, place, optimizer={"lr": lr}) for place, lr in ((1, 0.001), (2, 0.002)))
    listing = Listing(tmp_path)
    assert listing.knobs([steered.id, always.id])["differ"]["optimizer.lr"] == [0.001, 0.002]
    before = listing.look().rows
    write_knobs(steered, [{"path": "optimizer.lr", "value": 0.002}])
    settle(steered, 1)
    found = listing.knobs([steered.id, always.id])
    assert found["same"]["optimizer.lr"] == 0.002
    assert found["steered"] == {steered.id: {"optimizer.lr": [0.001, None]}}
    assert listing.look().rows != before, "a page learns that it has to ask again"
    delete(steered)
    found = listing.trashed_knobs([row["id"] for row in listing.trash()])
    assert (found["same"]["optimizer.lr"], list(found["steered"])) == (0.002, [steered.id])


def test_a_recipe_that_is_none_has_no_knobs() -> None:
    assert flat(None) == flat([1]) == flat({}) == {}
    assert columns_of({}) == {"runs": [], "same": {}, "differ": {}}
