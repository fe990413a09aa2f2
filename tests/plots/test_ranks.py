"""Who waits for whom: the picture, the table, the log of every process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from workbench.base.errors import RunError
from workbench.client.run import Run
from workbench.plots.facts import facts
from workbench.plots.ranks import ranks_figure, ranks_table, trained_together
from workbench.plots.report import report_html
from workbench.store.folder import RunFolder
from workbench.store.state import write_state
from workbench.store.view import RunView
from workbench.telemetry.streams import TelemetryWriter
from workbench.telemetry.waiting import waiting_rows


def view_of(folder: RunFolder, waits: tuple[float, ...]) -> RunView:
    """A run of so many processes, each of which waited so long in every step."""
    write_state(folder, status="finished")
    writer = TelemetryWriter(folder.telemetry, flush_seconds=None)
    for step in range(1, 1001):
        values = {f"waiting_ms/{rank}": each for rank, each in enumerate(waits)}
        writer.scalars(step, 0.1 * step, 64 * step, loss=2.0, step_ms=100.0, sent_mib=3.0, waited_ms=12.0, **values)
    writer.close()
    return RunView.read(folder)


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """An empty run folder."""
    path = tmp_path / "20260101-000000-a-000000-0000"
    path.mkdir()
    return RunFolder(path)


def test_the_process_that_others_wait_for_is_named(folder: RunFolder) -> None:
    view = view_of(folder, (20.0, 0.0, 10.0))
    assert waiting_rows(view.telemetry.scalars) == [
        ("process 0", ["20.0", "20%", "the fastest"]),
        ("process 1", ["0.0", "0%", "the slowest: others wait for it"]),
        ("process 2", ["10.0", "10%", ""]),
    ]
    sent = "sends 3.0 MiB in a step; the first then waits 12.0 ms for what is sent, 12% of the step"
    assert sent in ranks_table(view)
    assert facts(view)["slowest process"] == "process 1 of 3; process 0 waits 20.0 ms for it, 20% of a step"
    (heat,) = (trace for trace in ranks_figure(view).data if trace.type == "heatmap")
    assert np.array(heat.z).shape == (3, 400)
    assert np.array(heat.z).mean(axis=1) == pytest.approx([20, 0, 10])
    page = report_html([view])
    assert "Who waits for whom" in page
    assert "the slowest: others wait for it" in page


def test_a_run_of_one_process_shows_nothing_new(folder: RunFolder) -> None:
    view = view_of(folder, ())
    assert trained_together([view]) == []
    assert ranks_table(view) == ""
    assert "slowest process" not in facts(view)
    assert "Who waits for whom" not in report_html([view])


def test_every_process_has_its_log(folder: RunFolder) -> None:
    write_state(folder, status="finished")
    folder.log.write_text("the first\n")
    folder.log_of(1).write_text("one\nthe second\n")
    run = Run(folder)
    assert run.tail(1) == "the first"
    assert run.tail(1, rank=1) == "the second"
    with pytest.raises(RunError, match=r"has no process 7; it has 0, 1"):
        run.tail(1, rank=7)
