"""From names to folders: which runs folders a server has, and what it refuses of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.jupyter.live import run_folder
from workbench.jupyter.feed.registered_roots import register
from workbench.jupyter.server.registered_runs import Places, Refused, hold


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "runs", tmp_path / "notes")


def test_a_server_has_its_own_runs_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.delenv("WORKBENCH_RUNS", raising=False)
    assert Places.of_server(str(tmp_path)) == Places(tmp_path / "runs", tmp_path / "runtime" / "workbench", tmp_path)
    monkeypatch.setenv("WORKBENCH_RUNS", "mine")
    assert Places.of_server(str(tmp_path)).here == tmp_path / "mine"
    monkeypatch.setenv("WORKBENCH_RUNS", "/shared/runs")
    assert Places.of_server(str(tmp_path)).root("here") == Path("/shared/runs")


def test_a_folder_of_a_kernel_is_a_place(tmp_path: Path, places: Places) -> None:
    other = run_folder(tmp_path / "project" / "runs" / "20260101-000000-a")
    key = register(places.notes, other.path.parent)
    assert places.folder(key, other.id) == other
    assert places.run_ids(key) == [other.id]
    with pytest.raises(Refused, match="404") as refusal:
        places.folder("here", other.id)
    assert "no runs" in refusal.value.text


def test_folders_of_kernels_in_the_root_folder_are_listed_once(tmp_path: Path) -> None:
    root = tmp_path / "root"
    places = Places(root / "runs", tmp_path / "notes", root)
    inside, gone, outside = root / "notebooks" / "runs", root / "gone" / "runs", tmp_path / "rooted" / "runs"
    for folder in (root / "runs", inside, outside):
        folder.mkdir(parents=True)
    (tmp_path / "link").symlink_to(root)
    for folder in (root / "runs", tmp_path / "link" / "runs", gone, outside):
        register(places.notes, folder)
    key = register(places.notes, inside)
    assert places.listed() == {"here": root / "runs", key: inside}
    assert Places(root / "runs", places.notes).listed() == {"here": root / "runs"}


def test_refusals_name_the_latest_runs(places: Places) -> None:
    for day in range(1, 6):
        run_folder(places.here / f"2026010{day}-000000-a", alive=False)
    with pytest.raises(Refused) as refusal:
        places.folder("here", "20260109-000000-a")
    assert refusal.value.status_code == 404
    assert "20260105-000000-a, 20260104-000000-a, 20260103-000000-a" in refusal.value.text
    with pytest.raises(Refused) as refusal:
        places.folder("here", "../x")
    assert refusal.value.status_code == 400


def test_ids_of_users_come_after_those_with_a_time(places: Places) -> None:
    for run in ("zebra", "20260101-000000-a", "20260102-000000-a"):
        run_folder(places.here / run, alive=False)
    assert places.run_ids("here") == ["20260102-000000-a", "20260101-000000-a", "zebra"]


@pytest.mark.parametrize("part", ["recipe", "environment", "evaluations", "telemetry", "control", "state", "lock"])
def test_what_leads_out_is_refused(tmp_path: Path, places: Places, part: str) -> None:
    folder = run_folder(places.here / "a", alive=False)
    hold(folder)
    getattr(folder, part).unlink(missing_ok=True)
    getattr(folder, part).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused) as refusal:
        hold(folder)
    assert (refusal.value.status_code, "link" in refusal.value.text) == (403, True)


def test_streams_that_lead_out_and_a_sibling_with_the_same_beginning(tmp_path: Path, places: Places) -> None:
    folder = run_folder(places.here / "a", alive=False)
    folder.telemetry.mkdir()
    sibling = tmp_path / "runs-of-others" / "scalars.jsonl"
    sibling.parent.mkdir()
    sibling.write_text("")
    (folder.telemetry / "scalars.jsonl").symlink_to(sibling)
    with pytest.raises(Refused):
        hold(folder)


def test_a_runs_folder_may_itself_be_a_link(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "disk" / "a", alive=False)
    (folder.path / "environment.json").symlink_to(folder.recipe)
    (tmp_path / "runs").symlink_to(tmp_path / "disk")
    assert Places(tmp_path / "runs", tmp_path / "notes").folder("here", "a").path == tmp_path / "runs" / "a"


def test_checkpoints_may_be_on_another_disk_and_links_may_be_broken(tmp_path: Path, places: Places) -> None:
    folder = run_folder(places.here / "a", alive=False)
    (tmp_path / "scratch").mkdir()
    folder.checkpoints.symlink_to(tmp_path / "scratch")
    folder.evaluations.symlink_to(folder.path / "not-there")
    hold(folder)


def test_a_lease_that_leads_out_is_refused(tmp_path: Path, places: Places) -> None:
    folder = run_folder(places.here / "a", alive=False)
    folder.control.mkdir()
    (folder.control / "lease.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="403"):
        hold(folder)


def test_devices_and_pipes_are_refused(places: Places) -> None:
    folder = run_folder(places.here / "a", alive=False)
    os.mkfifo(folder.evaluations)
    with pytest.raises(Refused, match="403"):
        hold(folder)
