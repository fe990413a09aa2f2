"""The list of all runs: those under way first, of every place once, without what no page needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.jupyter.live import run_folder
from tests.jupyter.server.conftest import Server
from workbench.jupyter.feed.registered_roots import register
from workbench.jupyter.server.all_runs import AllRuns
from workbench.jupyter.server.registered_runs import Places
from workbench.store.labels import label
from workbench.store.state import write_state


def test_runs_under_way_come_first_then_the_newest(tmp_path: Path) -> None:
    places = Places(tmp_path / "runs", tmp_path / "notes", tmp_path)
    old = run_folder(places.here / "20260101-000000-old", name="old")
    for day in (2, 3):
        run_folder(places.here / f"2026010{day}-000000-done", "finished", False, name=f"done {day}")
    waits = run_folder(tmp_path / "notebooks" / "runs" / "20260104-000000-waits", "queued", False, name="waits")
    key = register(places.notes, waits.path.parent)
    all_runs = AllRuns(places)
    found = all_runs.look()
    assert [(row["run"], row["place"], row["status"]) for row in found["runs"]] == [
        (f"here/{old.id}", "", "running"),
        (f"{key}/{waits.id}", "notebooks/runs", "queued"),
        ("here/20260103-000000-done", "", "finished"),
        ("here/20260102-000000-done", "", "finished"),
    ]
    # A Lab knows them by the names that its kernel has for folders.
    keys = (register(places.notes, places.here), key)
    assert [row["kernels"] for row in found["runs"][:2]] == [f"{keys[0]}/{old.id}", f"{keys[1]}/{waits.id}"]
    assert found["counts"] == {"queued": 1, "running": 1, "finished": 2}
    write_state(old, status="running", step=7, loss=2.5)
    fewer = all_runs.look(2)
    assert [(row["name"], row["step"], row["loss"]) for row in fewer["runs"]] == [("old", 7, 2.5), ("waits", 0, None)]
    assert fewer["counts"] == found["counts"]


def test_runs_of_an_experiment_are_told_as_one_group_and_counted_whole(tmp_path: Path) -> None:
    places = Places(tmp_path / "runs", tmp_path / "notes", tmp_path)
    for run, status in (("a-s0", "finished"), ("a-s1", "finished"), ("b-s0", "running")):
        label(run_folder(places.here / f"20260102-000000-{run}", status, status == "running"), add=["x", "race:mini"])
    label(run_folder(places.here / "20260101-000000-a-s0", "finished", False), add=["race:mini"])
    run_folder(places.here / "20260103-000000-alone", "finished", False)
    group = "here/race:mini 20260102-000000"
    all_runs = AllRuns(places)
    first, *rest = (found := all_runs.look())["runs"]
    assert (first["group"], first["experiment"]) == (group, "race:mini 20260102-000000")
    assert [row["group"] for row in rest] == ["", group, group, "here/race:mini 20260101-000000"]
    assert found["groups"] == {group: {"running": 1, "finished": 2}, "here/race:mini 20260101-000000": {"finished": 1}}
    assert all_runs.look(1)["groups"] == {group: {"running": 1, "finished": 2}}, "also those that are not listed"
    assert all_runs.look(0)["groups"] == {}


def test_what_leads_out_of_the_runs_folder_is_not_listed(tmp_path: Path) -> None:
    places = Places(tmp_path / "runs", tmp_path / "notes")
    kept = run_folder(places.here / "20260101-000000-kept", "finished", False)
    bad = run_folder(places.here / "20260102-000000-bad", "finished", False)
    outside = tmp_path / "secret.json"
    bad.recipe.rename(outside)
    bad.recipe.symlink_to(outside)
    os.mkfifo(run_folder(places.here / "20260103-000000-pipe", "finished", False).path / "labels.json")
    all_runs = AllRuns(places)
    for _ in range(2):
        assert [row["id"] for row in all_runs.look()["runs"]] == [kept.id]
    bad.recipe.unlink()
    outside.rename(bad.recipe)
    assert [row["id"] for row in all_runs.look()["runs"]] == [bad.id, kept.id]


@pytest.mark.process
@pytest.mark.xdist_group("server")
def test_a_page_is_told_of_runs_and_a_stranger_is_not(server: Server) -> None:
    folder = run_folder(server.elsewhere / "20260101-000000-a1b2c3d4", "finished", False, name="a <b>run</b>")
    answer = server.client.get("/runs")
    assert answer.status == 200
    row = next(row for row in answer.json["runs"] if row["id"] == folder.id)
    assert (row["run"], row["name"], row["place"]) == (f"{server.key}/{folder.id}", "a <b>run</b>", "notebooks/runs")
    counted = server.client.get("/runs", most=0).json
    assert counted["runs"] == []
    assert counted["counts"]["finished"] >= 1
    assert server.client.get("/runs", most="-1").status == 400
    assert server.stranger.get("/runs").status == 403
