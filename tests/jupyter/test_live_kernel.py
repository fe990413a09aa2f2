"""The protocol between page and kernel in a real kernel: comm, snapshot, deltas, a request, the end.

`make compat` runs this under the oldest ipykernel that is allowed as well: messages come from threads, which is where
versions differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.jupyter.kernel import Kernel, live_kernel
from tests.jupyter.live import run_folder, until
from workbench.store import control
from workbench.store.folder import RunFolder
from workbench.store.state import write_state
from workbench.telemetry.streams import TelemetryWriter

VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return run_folder(tmp_path / "run-a", name="a", budget={"amount": 100, "unit": "steps"})


@pytest.fixture
def kernel(folder: RunFolder) -> Iterator[Kernel]:
    with live_kernel(folder.path.parent) as kernel:
        yield kernel


def custom(comm: str) -> Callable[[dict[str, Any]], bool]:
    """Return True if a message is one of ours to the page of this comm."""

    def ours(message: dict[str, Any]) -> bool:
        content = message["content"]
        return (
            message["msg_type"] == "comm_msg"
            and content["comm_id"] == comm
            and content["data"].get("method") == "custom"
        )

    return ours


def header(message: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = message["content"]["data"]["content"]
    return found


@pytest.mark.process
def test_page_and_kernel_speak_while_a_cell_is_running(kernel: Kernel, folder: RunFolder) -> None:
    writer = TelemetryWriter(folder.telemetry, flush_seconds=0.02)
    writer.scalars(1, 1, 100, loss=9.0, lr=1e-3, tokens_per_second=100.0)
    said = kernel.run("from workbench.client.run import Run\nview = Run('run-a', '.').watch()", cell="one")
    shown = next(m["content"] for m in said if VIEW in m["content"].get("data", {}))
    comm = shown["data"][VIEW]["model_id"]

    kernel.send(comm, {"type": "resync", "extra": []})
    whole = kernel.hear(custom(comm))
    assert (header(whole)["type"], len(whole["buffers"])) == ("snapshot", 1)

    # From a thread, while the kernel has no time for anybody.
    go_on = folder.path.parent / "go-on"
    wait = f"import pathlib, time\nwhile not pathlib.Path({str(go_on)!r}).exists():\n    time.sleep(0.01)"
    busy = kernel.begin(wait, cell="two")
    writer.scalars(2, 2, 200, loss=8.0, lr=1e-3, tokens_per_second=100.0)
    fresh = kernel.hear(custom(comm))
    assert header(fresh)["type"] != "snapshot"
    assert header(fresh)["since"] == header(whole)["cursor"]
    assert len(fresh["buffers"][0]) < 1000
    go_on.touch()
    kernel.finish(busy)

    kernel.send(comm, {"type": "steer", "run": "run-a", "verb": "pause"})
    until(lambda: [request.verb for request in control.pending(folder)] == ["pause"])

    write_state(folder, status="finished", step=2)
    final = kernel.hear(lambda m: m["msg_type"] == "update_display_data" and "image/png" in m["content"]["data"])
    assert final["content"]["transient"] == shown["transient"]
    writer.close()


@pytest.mark.process
def test_a_lab_leaves_what_a_saved_notebook_needs(kernel: Kernel, folder: RunFolder) -> None:
    """A line for where nothing can be drawn, and under it what was composed and which runs there were."""
    code = "import workbench as wb\nwb.Lab(wb.presets.fast(), runs_dir='.')"
    busy = kernel.begin(code, cell="one")
    drawn: dict[str, Any] = {}

    def shows_the_lab(message: dict[str, Any]) -> bool:
        data = message["content"].get("data", {})
        drawn.update(data if VIEW in data else {})
        # Drawn by a thread, so perhaps before the cell has ended.
        return message["msg_type"] == "update_display_data" and "Recipe fast" in data.get("text/html", "")

    kept = kernel.hear(shows_the_lab, seconds=60)["content"]["data"]["text/html"]
    assert drawn["text/plain"] == (
        f"Lab(runs of {folder.path.parent}); open the notebook in JupyterLab and run this cell again to use it. "
        "Where JupyterLab shows this line, install workbench in the environment that JupyterLab runs in, "
        "and restart it."
    )
    assert drawn["text/html"].startswith("<p>Lab(runs of")
    assert "run-a" in kept
    assert "<script" not in kept
    assert len(kept) < 20_000
    assert busy


TWO_PICKS = """
import pathlib, threading, time, ipywidgets
from workbench.jupyter.page import Page
heard, ours = [], Page()

def picked(_widget, content, _buffers):
    if content["pick"] == "first":
        pathlib.Path("begun").touch()
        time.sleep(0.5)
    heard.append((content["pick"], threading.current_thread() is threading.main_thread()))
    box.send({})  # From now on ipykernel sends what is for this widget to the thread that the page names.

box, knob = ipywidgets.Button(), ipywidgets.Button()
box.on_msg(picked)
knob.on_msg(picked)
"""


@pytest.mark.process
def test_what_is_said_to_two_threads_is_done_in_order(kernel: Kernel, folder: RunFolder) -> None:
    kernel.run(TWO_PICKS)
    comm = kernel.value("box.model_id")
    if (subshell := kernel.subshell()) is None:
        pytest.skip("this ipykernel hears messages in one thread")
    kernel.send(comm, {"pick": "first"}, subshell)
    until((folder.path.parent / "begun").exists)
    time.sleep(0.6)
    kernel.send(comm, {"pick": "second"}, subshell)
    until(lambda: kernel.value("len(heard)") == 2)
    assert kernel.value("heard") == [("first", True), ("second", True)]


@pytest.mark.process
def test_what_is_typed_does_not_overtake_a_pick_that_waits(kernel: Kernel, folder: RunFolder) -> None:
    kernel.run(TWO_PICKS)
    if (subshell := kernel.subshell()) is None or not kernel.value("hasattr(knob.comm, '_reply_subshell_for')"):
        pytest.skip("this ipykernel hears messages of a widget in one thread")
    # As ipykernel notes it where that thread was the last to change the knob.
    kernel.run(f"knob.comm._reply_subshell_id = {subshell!r}")
    picks, typed = kernel.value("(box.model_id, knob.model_id)")
    kernel.send(picks, {"pick": "first"})
    until((folder.path.parent / "begun").exists)
    kernel.send(picks, {"pick": "second"})
    kernel.send(typed, {"pick": "typed"}, subshell)
    until(lambda: kernel.value("len(heard)") == 3)
    assert [what for what, _ in kernel.value("heard")] == ["first", "second", "typed"]
