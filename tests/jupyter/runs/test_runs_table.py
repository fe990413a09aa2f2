"""The table of runs: what the folders say, and nothing kept that they no longer say."""

from __future__ import annotations

import gc
import re
import shutil
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

from tests.jupyter.live import run_folder, until
from tests.jupyter.test_bundle import fingerprint
from workbench.jupyter.bundles import script
from workbench.jupyter.runs import runs_table
from workbench.jupyter.runs.runs_table import RunsTable
from workbench.store import control
from workbench.store.folder import RunFolder, write_json
from workbench.store.labels import read_labels
from workbench.store.state import write_state


def make_run(root: Path, number: int, **state: object) -> RunFolder:
    """A run folder as another process would leave it."""
    folder = RunFolder(root / f"20260101-{number:06d}-run-abcdef-0000")
    folder.path.mkdir(parents=True)
    write_json(folder.recipe, {"name": f"<b>run {number}</b>", "seed": number})
    write_state(folder, **{"status": "finished", **state})
    return folder


class Heard(RunsTable):
    """A table that keeps what it sends."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.sent: list[dict[str, Any]] = []
        super().__init__(*args, refresh_seconds=0, **kwargs)

    def send(self, content: Any, buffers: Any = None) -> None:
        self.sent.append({**content, "buffers": buffers})

    def hears(self, **message: Any) -> None:
        """As if the page had sent it."""
        self._heard(self, message, [])

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Return what was sent of one type."""
        return [message for message in self.sent if message["type"] == kind]


def test_rows_say_what_the_folders_say(tmp_path: Path) -> None:
    make_run(tmp_path, 1, step=7, progress=0.5, loss=6.25, message="done")
    make_run(tmp_path, 2, status="failed", error="the disk is full", message="writing")
    table = RunsTable(tmp_path, refresh_seconds=0)
    newest, oldest = table.rows
    assert (newest["status"], newest["message"], newest["loss"]) == ("failed", "the disk is full", None)
    assert (oldest["name"], oldest["step"], oldest["loss"], oldest["progress"]) == ("<b>run 1</b>", 7, 6.25, 0.5)


def test_no_folder_is_no_runs_and_one_that_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = RunsTable(tmp_path / "missing", refresh_seconds=0)
    assert (table.rows, table.complaint) == ([], "")

    def fails(*_: object) -> None:
        raise PermissionError("not yours")

    with monkeypatch.context() as patch:
        patch.setattr(table._listing, "look", fails)
        table.refresh()
    assert "cannot be read: not yours" in table.complaint
    table.refresh()
    assert table.complaint == ""


def test_only_rows_that_changed_are_sent(tmp_path: Path) -> None:
    one, _ = make_run(tmp_path, 1), make_run(tmp_path, 2)
    table = Heard(tmp_path)
    (first,) = table.sent
    assert [len(first["rows"]), first["total"]] == [2, 2]
    table.refresh()
    assert table.sent == [first], "nothing new sends nothing"
    write_state(one, step=8)
    table.refresh()
    change = table.sent[-1]
    assert [row["step"] for row in change["rows"]] == [8]
    assert (change["order"], change["whole"], change["seq"]) == (None, False, first["seq"] + 1)
    shutil.rmtree(one.path)
    table.refresh()
    assert (table.sent[-1]["rows"], len(table.sent[-1]["order"])) == ([], 1)


def test_a_page_that_mounts_gets_everything(tmp_path: Path) -> None:
    make_run(tmp_path, 1)
    table = Heard(tmp_path)
    table.hears(type="hello")
    assert (table.sent[-1]["whole"], len(table.sent[-1]["rows"])) == (True, 1)
    assert table.sent[-1]["seq"] == 1
    assert "rows" not in table.get_state(), "a saved notebook holds no list of runs"


def test_a_deleted_run_is_no_longer_selected_or_watched(tmp_path: Path) -> None:
    kept, gone = make_run(tmp_path, 1), make_run(tmp_path, 2)
    table = RunsTable(tmp_path, refresh_seconds=0)
    table.selected = table.watched = [gone.id, kept.id]
    assert [run.id for run in table.runs(table.selected)] == [gone.id, kept.id]
    shutil.rmtree(gone.path)
    table.refresh()
    assert table.selected == table.watched == [kept.id]


def test_a_run_that_is_launched_while_the_folders_are_looked_at_stays_watched(tmp_path: Path) -> None:
    one = make_run(tmp_path, 1)
    table = RunsTable(tmp_path, refresh_seconds=0)

    def launch() -> None:
        run = make_run(tmp_path, 2)
        table.refresh()
        table.selected = table.watched = [run.id]

    launched = threading.Thread(target=launch, daemon=True)

    def told(_change: object) -> None:
        # Whoever hears of new rows takes a while; this look is of before the launch.
        if launched.ident is None:
            launched.start()
            launched.join(0.5)

    table.observe(told, names="rows")
    write_state(one, step=8)
    table.refresh()
    launched.join(60)
    assert table.selected == table.watched == [table.rows[0]["id"]]
    assert len(table.rows) == 2


def test_the_first_rows_are_there_at_once_and_the_others_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_table, "FIRST", 3)
    for number in range(5):
        make_run(tmp_path, number)
    table = Heard(tmp_path)
    assert [(len(message["rows"]), message["total"]) for message in table.of("rows")] == [(3, 5)]
    table.refresh()
    assert len(table.rows) == 5
    # The next table of the same folder, as after running the cell again, has them all.
    assert len(RunsTable(tmp_path, refresh_seconds=0).rows) == 5


def test_requests_are_done_in_a_thread_and_told(tmp_path: Path) -> None:
    one = make_run(tmp_path, 1)
    table = Heard(tmp_path)
    table.hears(type="do", request=4, verb="label", runs=[one.id], add=["good"], remove=[])
    until(lambda: table.of("said") != [])
    assert table.of("said")[0]["request"] == 4
    until(lambda: read_labels(one).tags == ("good",) and table.rows[0]["tags"] == ["good"])
    table.hears(type="do", request=5, verb="label", runs=[one.id], add=["not a tag"])
    until(lambda: len(table.of("said")) == 2)
    assert table.of("said")[1]["error"]
    assert "is not a tag" in table.of("said")[1]["text"]


def test_deleting_shows_the_trash_anew(tmp_path: Path) -> None:
    one = make_run(tmp_path, 1)
    table = Heard(tmp_path)
    table.hears(type="do", request=1, verb="delete", runs=[one.id])
    until(lambda: table.of("trash") != [])
    assert [row["id"] for row in table.of("trash")[0]["rows"]] == [one.id]
    assert table.rows == []
    table.hears(type="do", request=2, verb="restore", runs=[one.id])
    until(lambda: len(table.rows) == 1)


def test_a_watched_run_that_comes_back_from_the_trash_is_watched_again(tmp_path: Path) -> None:
    seen, unseen, other = (make_run(tmp_path, number).id for number in (1, 2, 3))
    table = Heard(tmp_path, most_watched=8)
    table.watched = [other, seen]
    table.hears(type="do", request=1, verb="delete", runs=[seen, unseen])
    until(lambda: len(table.of("trash")) == 1)
    assert table.watched == [other]
    table.hears(type="do", request=2, verb="restore", runs=[seen, unseen])
    until(lambda: table.watched == [other, seen])
    assert len(table.rows) == 3


def test_who_gives_way_to_another_run_is_named(tmp_path: Path) -> None:
    first, second, third = (make_run(tmp_path, number).id for number in (1, 2, 3))
    table = Heard(tmp_path, most_watched=2)
    assert table.watch(first, second) == ""
    said = table.watch(third)
    assert table.watched == [second, third]
    assert said.startswith("<b>run 1</b> gave way, 2 runs at most are drawn: to draw it again")
    for told in (said, ""):
        table.note(told)
    assert [message["text"] for message in table.of("said")] == [said]
    assert table.watch(third) == "", "nobody gives way to one that is drawn already"


def test_knobs_are_sent_when_they_are_asked_for(tmp_path: Path) -> None:
    make_run(tmp_path, 1)
    make_run(tmp_path, 2)
    table = Heard(tmp_path)
    table.hears(type="knobs")
    until(lambda: table.of("knobs") != [])
    assert table.of("knobs")[0]["differ"]["seed"] == [2, 1]
    assert table.of("knobs")[0]["texts"]["seed"].startswith("seed of initialisation")


def test_a_fork_is_asked_of_whoever_has_the_forms(tmp_path: Path) -> None:
    one = make_run(tmp_path, 1)
    asked: list[str] = []
    table = Heard(tmp_path, fork=asked.append)
    table.hears(type="do", request=1, verb="fork", runs=[one.id])
    assert asked == [one.id]
    assert "edit the recipe" in table.of("said")[0]["text"]
    alone = Heard(tmp_path)
    assert "fork" not in alone.verbs
    alone.hears(type="do", request=1, verb="fork", runs=[one.id])
    assert alone.of("said")[0]["error"]


def test_a_run_is_asked_as_the_panel_of_a_watched_one_asks_it(tmp_path: Path) -> None:
    alive = run_folder(tmp_path / "20260101-000000-run-abcdef-0000")
    table = Heard(tmp_path)
    table.hears(type="steer", id="page-1", run=alive.id, verb="checkpoint", controller="page")
    until(lambda: [answer["state"] for answer in table.of("answer")] == ["asked"])
    (request,) = control.pending(alive)
    control.answer(alive, request.id, None, "saving a checkpoint, about 3 s")
    until(lambda: len(table.of("answer")) == 2)
    control.answer(alive, request.id, True, "saved step-5")
    until(lambda: len(table.of("answer")) == 3)
    told = [(answer["state"], answer["text"], answer["id"]) for answer in table.of("answer")[1:]]
    assert told == [("accepted", "saving a checkpoint, about 3 s", "page-1"), ("done", "saved step-5", "page-1")]
    before = len(table.sent)
    for run in ("../elsewhere", "20260101-000000-gone-000000-0000", None):
        table.hears(type="steer", id="a", run=run, verb="stop")
    assert len(table.sent) == before


def test_runs_can_be_watched_where_somebody_draws_them(tmp_path: Path) -> None:
    assert "watch" not in RunsTable(tmp_path, refresh_seconds=0).verbs
    assert "watch" in RunsTable(tmp_path, refresh_seconds=0, most_watched=8).verbs


def test_a_page_can_have_the_folders_looked_at_at_once(tmp_path: Path) -> None:
    table = RunsTable(tmp_path, refresh_seconds=600)
    until(lambda: not table._wake.is_set())
    one = make_run(tmp_path, 1)
    table._heard(table, {"type": "look"}, [])
    until(lambda: [row["id"] for row in table.rows] == [one.id])
    table.close()


def test_nonsense_of_a_page_is_passed_over(tmp_path: Path) -> None:
    table = Heard(tmp_path)
    for message in ("text", None, 7):
        table._heard(table, message, [])
    table.hears(type="do", request="x", verb=None, runs="all")
    until(lambda: table.of("said") != [])
    assert table.of("said")[0]["error"]


def test_the_page_was_made_from_these_sources_and_asks_nobody_but_its_own_jupyter() -> None:
    page = script("runs_table")
    assert page.startswith(f"/* sources sha256:{fingerprint()}"), "run `make frontend`"
    # The name of a namespace is no address.
    assert set(re.findall(r"https?://[^\s\"'`]+", page)) <= {"http://www.w3.org/2000/svg"}
    assert not re.search(r"XMLHttpRequest|WebSocket|\bimport\s*\(", page)
    assert len(page) < 100_000  # a library that draws would be ten times that


def followers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "workbench-runs"}


def test_the_thread_sees_other_processes_runs_and_ends_with_the_table(tmp_path: Path) -> None:
    before = followers()
    table = RunsTable(tmp_path, refresh_seconds=0.02)
    (own,) = followers() - before
    make_run(tmp_path, 1)
    until(lambda: len(table.rows) == 1)
    table.close()
    own.join(5)
    assert not own.is_alive()


def test_a_closed_table_is_collected(tmp_path: Path) -> None:
    table = RunsTable(tmp_path, refresh_seconds=0)
    trace = weakref.ref(table)
    table.close()
    del table
    gc.collect()
    assert trace() is None


def test_a_cell_that_is_run_again_shows_the_same_rows_again(tmp_path: Path) -> None:
    first = Heard(tmp_path)
    first.look = {"filter": "state:finished", "sort": ["loss", 1]}
    first.close()
    again, elsewhere = Heard(tmp_path), Heard(tmp_path / "other")
    assert again.look == {"filter": "state:finished", "sort": ["loss", 1]}
    assert elsewhere.look == {}
    again.close()
    elsewhere.close()
