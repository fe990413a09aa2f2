"""Cells and their widgets in a real kernel: what a page shows no more leaves no thread and no memory behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.jupyter.kernel import Kernel, live_kernel
from tests.jupyter.live import run_folder
from workbench.telemetry.streams import TelemetryWriter

PREPARE = """
import gc, threading, tracemalloc
from ipywidgets.widgets.widget import _instances
from workbench.client.run import Run
from workbench.jupyter.watch.monitor import Monitor

def threads():
    return sum(thread.name.startswith("workbench") for thread in threading.enumerate())
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    folder = run_folder(tmp_path / "run-a", name="a", budget={"amount": 2000, "unit": "steps"})
    writer = TelemetryWriter(folder.telemetry)
    for step in range(1, 2001):
        writer.scalars(step, step, step * 100, loss=10.0 / step, lr=1e-3, tokens_per_second=100.0)
    writer.close()
    with live_kernel(tmp_path) as kernel:
        kernel.run(PREPARE)
        yield kernel


@pytest.mark.process
def test_a_cell_run_again_closes_what_it_showed(kernel: Kernel) -> None:
    kernel.run("view = Run('run-a', '.').watch()", cell="one")
    before = kernel.value("len(_instances)"), kernel.value("threads()")
    assert before[1] == 1
    sizes = []
    for _ in range(20):
        kernel.run("view = Run('run-a', '.').watch()", cell="one")
        kernel.run("gc.collect(); tracemalloc.is_tracing() or tracemalloc.start()")
        sizes.append(kernel.value("tracemalloc.get_traced_memory()[0]"))
    assert (kernel.value("len(_instances)"), kernel.value("threads()")) == before
    # A track of 2,000 steps holds 100 kB: ten that stayed behind would be 1 MB. The kernel's own noise: up to 0.15 MB.
    assert sizes[-1] - sizes[9] < 500_000


def test_a_view_that_another_cell_shows_stays(kernel: Kernel) -> None:
    kernel.run("view = Run('run-a', '.').watch()", cell="one")
    kernel.run("view", cell="two")
    kernel.run("other = Run('run-a', '.').watch()", cell="one")
    assert kernel.value("threads()") == 2
    kernel.run("None", cell="two")
    assert kernel.value("threads()") == 1
    assert kernel.value("(view.comm is None, other.comm is None)") == (True, False)


def test_cells_without_ids_close_nothing(kernel: Kernel) -> None:
    for _ in range(2):
        kernel.run("Run('run-a', '.').watch()")
    assert kernel.value("threads()") == 2


@pytest.mark.extended
@pytest.mark.process
def test_pictures_of_ended_runs_leave_nothing_behind_either(kernel: Kernel) -> None:
    kernel.run(
        "from workbench.store.state import write_state\nwrite_state(Run('run-a', '.').folder, status='finished')"
    )
    kernel.run("Run('run-a', '.').watch()", cell="one")
    before = kernel.value("len(_instances)")
    for _ in range(3):
        kernel.run("Run('run-a', '.').watch()", cell="one")
    assert kernel.value("len(_instances)") == before
