"""The widget without a browser: its comm, its controls, its end, and many of them."""

from __future__ import annotations

import base64
import gc
import threading
import weakref
from pathlib import Path
from typing import Any

import comm
import pytest
from IPython.core.interactiveshell import InteractiveShell

from tests.jupyter.live import Wire, run_folder, until
from workbench.base.errors import RunError
from workbench.client.run import Run
from workbench.jupyter.watch import monitor as module
from workbench.jupyter.watch.monitor import Monitor
from workbench.store import control
from workbench.store.state import write_state
from workbench.telemetry.streams import TelemetryWriter


@pytest.fixture(autouse=True)
def wired(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comm, "create_comm", Wire)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    folder = run_folder(tmp_path / "run-a", name="<script>alert(1)</script>", budget={"amount": 20, "unit": "steps"})
    writer = TelemetryWriter(folder.telemetry)
    for step in range(1, 21):
        writer.scalars(step, step, step * 100, loss=10.0 / step, lr=1e-3, tokens_per_second=100.0)
        writer.layers(step, state=[0, 1, 3])
    writer.close()
    return Run(folder)


@pytest.fixture
def monitor(run: Run):
    monitor = Monitor(run)
    yield monitor
    monitor.close()


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Collect what goes to IPython's display, but for the saved picture and the place of figures beside it."""
    calls: list[tuple[dict[str, Any], dict[str, Any]]] = []

    def display(bundle: dict[str, Any], **options: Any) -> None:
        if not any(place in bundle.get("text/html", "") for place in ("wb-saved", "wb-figure-place")):
            calls.append((bundle, options))

    monkeypatch.setattr(module, "display", display)
    monkeypatch.setattr(module.InteractiveShell, "initialized", lambda: True)
    return calls


def ask(monitor: Monitor, **message: Any) -> None:
    """As if the page had sent it."""
    monitor._handle_msg({"content": {"data": {"method": "custom", "content": message}}, "buffers": []})


def shown_runs(monitor: Monitor) -> list[str]:
    """Ids of the runs in the latest message with names in it."""
    wholes = [header for header, _ in monitor.comm.custom() if header["type"] == "snapshot"]
    return [entry["id"] for header in wholes[-1:] for entry in header["runs"]]


def test_a_page_that_asks_gets_a_snapshot_in_one_buffer(monitor: Monitor) -> None:
    ask(monitor, type="resync", extra=["grad_norm", 7, None])
    until(lambda: bool(monitor.comm.custom()))
    header, buffers = monitor.comm.custom()[0]
    assert (header["type"], len(buffers)) == ("snapshot", 1)
    assert header["runs"][0]["name"] == "<script>alert(1)</script>"
    assert header["runs"][0]["columns"] == 20


def test_the_trait_holds_a_picture_for_saved_notebooks(monitor: Monitor) -> None:
    until(lambda: len(monitor.snapshot) > 0)
    assert len(monitor.snapshot) <= 32 * 1024
    assert any(
        "snapshot" in (data.get("state") or {}) or data.get("buffer_paths") for data, _ in monitor.comm.published
    )


def test_buttons_reach_the_run(monitor: Monitor, run: Run) -> None:
    ask(monitor, type="steer", run=run.id, verb="pause")
    until(lambda: [r.verb for r in control.pending(run.folder)] == ["pause"])
    ask(monitor, type="steer", run=run.id, verb="stop")
    until(lambda: [r.verb for r in control.pending(run.folder)] == ["pause", "stop"])


def test_a_page_may_only_ask_for_the_listed_verbs_of_its_own_runs(monitor: Monitor, run: Run) -> None:
    threads = threading.active_count()
    for message in ({"run": "../run-a", "verb": "stop"}, {"verb": "stop"}, {"run": ["x"], "verb": ["stop"]}):
        ask(monitor, type="steer", **message)
    ask(monitor, type="export", run=run.id)
    monitor._heard(monitor, "no object", [])
    ask(monitor, type="resync", extra="loss")
    until(lambda: threading.active_count() <= threads)
    assert control.pending(run.folder) == []
    assert not [header for header, _ in monitor.comm.custom() if header["type"] in ("answer", "notice")]


def test_a_page_may_have_another_run_of_the_folder_shown(monitor: Monitor, run: Run) -> None:
    fork = run_folder(run.folder.path.parent / "run-b", name="fork")
    ask(monitor, type="resync")
    until(lambda: bool(monitor.comm.custom()))
    for _ in range(2):
        ask(monitor, type="watch", run=fork.id)
    until(lambda: [entry["name"] for entry in monitor.comm.custom()[-1][0].get("runs", [])][1:] == ["fork"])
    assert [name.rpartition("/")[2] for name in monitor.served] == [run.id, fork.id]
    ask(monitor, type="steer", run=fork.id, verb="pause")
    until(lambda: [request.verb for request in control.pending(fork)] == ["pause"])
    for wrong in ("../run-b", "run-c", None):
        ask(monitor, type="watch", run=wrong)
    until(lambda: sum(header["type"] == "notice" and header["error"] for header, _ in monitor.comm.custom()) == 3)
    assert len(monitor.runs) == 2


def test_other_runs_take_the_place_of_those_shown_and_who_stays_keeps_its_colour(monitor: Monitor, run: Run) -> None:
    second, third = (run_folder(run.folder.path.parent / name, name=name) for name in ("run-b", "run-c"))
    ask(monitor, type="resync")
    monitor.add(second)
    monitor.add(second)
    assert monitor.places == {run.id: 0, second.id: 1}
    until(lambda: shown_runs(monitor) == [run.id, second.id])
    monitor.watch([second, third])
    assert monitor.places == {second.id: 1, third.id: 0}
    until(lambda: shown_runs(monitor) == [second.id, third.id])
    assert [name.rpartition("/")[2] for name in monitor.served] == [second.id, third.id]
    assert [view.place for view in monitor._views()] == [1, 0]
    ask(monitor, type="steer", run=third.id, verb="pause")
    until(lambda: [request.verb for request in control.pending(third)] == ["pause"])


def test_a_view_without_runs_offers_an_example_and_shows_it(run: Run) -> None:
    asked: list[str] = []
    empty = Monitor([], example=lambda: asked.append("example") or empty.add(run))
    assert (empty.example, empty.feed_ended, empty.settle()) == (True, False, False)
    ask(empty, type="resync")
    until(lambda: bool(empty.comm.custom()))
    assert empty.comm.custom()[0][0]["runs"] == []
    ask(empty, type="example")
    assert asked == ["example"]
    until(lambda: shown_runs(empty) == [run.id])
    empty.close()


def test_a_recipe_is_opened_beside_the_view_where_there_is_a_place_for_it(run: Run) -> None:
    opened: list[str] = []
    beside, alone = Monitor([run], edit=opened.append), Monitor([run])
    assert (beside.edits, alone.edits) == (True, False)
    for each in (beside, alone):
        for name in (run.id, "another"):
            ask(each, type="edit", run=name)
        each.close()
    assert opened == [run.id]


def test_a_run_that_was_resumed_elsewhere_is_followed_again(run: Run) -> None:
    write_state(run.folder, status="stopped")
    view = Monitor([run])
    ask(view, type="resync")
    until(lambda: not view.feed.running)
    view.stir()
    assert not view.feed.running, "it has not been resumed"
    write_state(run.folder, status="running", step=5)
    view.stir()
    until(lambda: view.feed.tracks[0].status["status"] == "running")
    view.close()


def test_a_run_that_was_renamed_after_its_end_is_told_anew(run: Run) -> None:
    write_state(run.folder, status="stopped")
    view = Monitor([run])
    ask(view, type="resync")
    until(lambda: not view.feed.running)
    run.name = "renamed"
    view.stir()
    until(lambda: not view.feed.running)
    *_, (last, _) = view.comm.custom()
    assert [each["name"] for each in last["runs"]] == ["renamed"]
    view.stir()
    assert not view.feed.running, "nothing is new"
    view.close()


def test_an_example_that_cannot_start_is_told_where_it_was_asked_for(monitor: Monitor) -> None:
    def refuse() -> None:
        raise RunError("the disk is full")

    empty = Monitor([], example=refuse)
    for each in (empty, monitor):
        ask(each, type="example")
    notices = [header for header, _ in empty.comm.custom() if header["type"] == "notice"]
    assert [(notice["error"], notice["text"]) for notice in notices] == [(True, "no example: the disk is full")]
    assert not [header for header, _ in monitor.comm.custom() if header["type"] == "notice"], "it offers none"
    empty.close()


def test_an_error_of_a_button_is_shown_in_the_widget(monitor: Monitor, run: Run) -> None:
    write_state(run.folder, status="finished")
    ask(monitor, type="steer", run=run.id, verb="stop")
    until(lambda: any(header["type"] == "answer" for header, _ in monitor.comm.custom()))
    answer = next(header for header, _ in monitor.comm.custom() if header["type"] == "answer")
    assert (answer["state"], "finished" in answer["text"]) == ("refused", True)


def test_at_the_end_the_output_becomes_static(monitor: Monitor, run: Run, shown: list) -> None:
    monitor.show()
    bundle, options = shown[0]
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == monitor.model_id
    assert "<script" not in bundle["text/html"]
    assert not monitor.settle(), "the run goes on"
    write_state(run.folder, status="finished", step=20)
    until(lambda: len(shown) == 2)
    static, update = shown[1]
    assert update == {"raw": True, "display_id": options["display_id"], "update": True}
    assert set(static) == {"text/html", "image/png", "text/plain"}
    assert static["image/png"].startswith(b"\x89PNG")
    assert "<script" not in static["text/html"]
    assert base64.b64encode(static["image/png"][:30]).decode()[:30] in static["text/html"]
    assert monitor.settle()
    assert len(shown) == 2, "once"
    assert monitor._esm == monitor._code == "", "no page drew it: the notebook need not carry the bundle"


def test_a_run_that_was_resumed_while_its_picture_was_drawn_keeps_its_view(
    monitor: Monitor, run: Run, shown: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor.show()
    real = monitor._static_bundle

    def slow() -> dict[str, Any]:
        write_state(run.folder, status="running")
        return real()

    monkeypatch.setattr(monitor, "_static_bundle", slow)
    write_state(run.folder, status="stopped")
    until(lambda: run.status == "running")
    assert not monitor.settle()
    assert len(shown) == 1


def test_a_page_that_missed_the_replacement_is_told_what_to_do(monitor: Monitor, run: Run, shown: list) -> None:
    monitor.show()
    ask(monitor, type="resync")
    until(lambda: bool(monitor.comm.custom()))
    write_state(run.folder, status="finished")
    until(lambda: monitor.settle())
    assert monitor.advice == (
        f'The run has ended. To keep its picture in the notebook, run wb.compare("{run.folder.path}") in a new cell.'
    )
    assert monitor._code, "a page may still draw it"


def test_what_shows_several_runs_again_names_each(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    second = Run(run_folder(tmp_path / "run-b", name="b"))
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path))
    monitor = Monitor([run, second])
    ask(monitor, type="resync")
    assert monitor._in_new_cell() == 'run wb.compare("run-a", "run-b") in a new cell'
    for each in (run, second):
        write_state(each.folder, status="finished")
    monitor._display_ids.append("shown")
    until(lambda: monitor.settle())
    assert monitor.advice.startswith("The runs have ended. To keep their picture in the notebook, run wb.compare(")
    monitor.close()


@pytest.mark.parametrize("begun", ["running", "finished"])
def test_keep_live_keeps_the_view_beside_the_picture(begun: str, run: Run, shown: list) -> None:
    write_state(run.folder, status=begun)
    monitor = Monitor([run], keep_live=True)
    monitor.show()
    assert "application/vnd.jupyter.widget-view+json" in shown[0][0]
    write_state(run.folder, status="stopped" if begun == "running" else begun)
    until(lambda: len(shown) == 2)
    assert set(shown[1][0]) == {"application/vnd.jupyter.widget-view+json", "text/html", "image/png", "text/plain"}
    assert "<img" in shown[1][0]["text/html"]
    monitor.close()


def test_a_run_that_has_ended_is_shown_static_at_once(run: Run, shown: list) -> None:
    write_state(run.folder, status="finished")
    monitor = Monitor([run])
    monitor._ipython_display_()
    assert set(shown[0][0]) == {"text/html", "image/png", "text/plain"}
    monitor.close()


def test_the_end_of_a_cell_settles_what_ended_in_it(run: Run, shown: list, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = InteractiveShell.instance()
    monkeypatch.setattr(module, "get_ipython", lambda: shell)
    shell.user_ns |= {"run": run, "Monitor": Monitor, "write_state": write_state}
    try:
        before = len(shell.events.callbacks["post_run_cell"])
        shell.run_cell(
            "monitor = Monitor(run); monitor.feed.close(); monitor.show(); monitor.show()", store_history=True
        )
        assert len(shown) == 1, "one view per cell"
        assert len(shell.events.callbacks["post_run_cell"]) == before + 1
        shell.run_cell("write_state(run.folder, status='finished')")
        assert len(shown) == 2, "published before the cell ended, without the thread"
        assert len(shell.events.callbacks["post_run_cell"]) == before
        shell.user_ns["monitor"].close()
    finally:
        InteractiveShell.clear_instance()


@pytest.mark.parametrize("ended", [False, True])
def test_watching_shows_once_per_cell_wherever_it_stands(
    ended: bool, run: Run, shown: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = InteractiveShell.instance()
    monkeypatch.setattr(module, "get_ipython", lambda: shell)
    shell.user_ns["run"] = run
    if ended:
        write_state(run.folder, status="finished")
    try:
        shell.run_cell(f"monitor = run.watch(target_loss=2.5, keep_live={not ended}); 1", store_history=True)
        assert len(shown) == 1, "shown though it is not the last expression"
        shell.run_cell("(second := run.watch())", store_history=True)
        assert len(shown) == 2, "shown once though it is also the last expression"
        monitor = shell.user_ns["monitor"]
        assert (monitor.target_loss, monitor.keep_live) == (2.5, not ended)
        shell.run_cell("monitor", store_history=True)
        assert len(shown) == 3, "and again where another cell asks for it"
        monitor.close()
        shell.user_ns["second"].close()
    finally:
        shell.user_ns.clear()
        InteractiveShell.clear_instance()


def test_without_ipython_the_text_is_printed(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run.watch().close()
    said = capsys.readouterr().out
    assert "JupyterLab" in said
    assert "{" not in said


def test_no_runs_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(RunError, match="launch"):
        Monitor([])


@pytest.mark.extended
def test_twenty_widgets_leave_no_thread_and_no_memory_behind(run: Run) -> None:
    def feeds() -> list[threading.Thread]:
        return [thread for thread in threading.enumerate() if thread.name == "workbench-feed"]

    assert not feeds()
    monitors = [Monitor([run]) for _ in range(20)]
    for monitor in monitors:
        ask(monitor, type="resync")
    for monitor in monitors:
        until(lambda wire=monitor.comm: bool(wire.custom()))
    assert len(feeds()) == 20
    traces = [weakref.ref(monitor) for monitor in monitors]
    for monitor in monitors:
        monitor.close()
    assert not feeds()
    assert all(not len(monitor.feed.tracks[0].columns) for monitor in monitors)
    del monitors, monitor
    gc.collect()
    assert not [trace for trace in traces if trace() is not None]


def test_a_notebook_of_an_ended_run_carries_no_bundle(run: Run, shown: list) -> None:
    write_state(run.folder, status="finished")
    monitor = Monitor(run)
    monitor.show()
    until(lambda: not monitor.feed.running)
    assert (monitor._esm, monitor._code, monitor._css, monitor.snapshot) == ("", "", "", b"")
    monitor.close()


def test_a_page_may_look_closer_and_open_figures(monitor: Monitor, run: Run, shown: list) -> None:
    ask(monitor, type="detail", ask=1, spans=[[5, 8]], names=["loss", 7], points=100)
    for damaged in ({"spans": "all"}, {"spans": [[1, 2]], "names": None}, {"ask": "1"}):
        ask(monitor, type="detail", **{"ask": 2, "spans": [], "names": [], "points": 1, **damaged})
    until(lambda: any(header["type"] == "detail" for header, _ in monitor.comm.custom()))
    header = next(header for header, _ in monitor.comm.custom() if header["type"] == "detail")
    assert header["runs"][0]["series"] == [["loss", 4, 4]]
    monitor.show()
    ask(monitor, type="figure", view="loss", x="step", runs=[run.id])
    until(lambda: len(shown) == 2)
    bundle, options = shown[1]
    assert "application/vnd.plotly.v1+json" in bundle
    assert options["update"]
    until(lambda: any(header.get("figure") == "Loss" for header, _ in monitor.comm.custom()))
