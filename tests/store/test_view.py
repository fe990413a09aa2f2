"""One reading of a run: whole for a whole run, empty parts for a damaged one."""

from __future__ import annotations

import pytest

from tests.tiny_runs import wait_until
from workbench.store.folder import RunFolder, write_json
from workbench.store.labels import label
from workbench.store.state import write_state
from workbench.store.view import RunView
from workbench.telemetry.streams import TelemetryReader, TelemetryWriter


def test_everything_of_a_run_is_read(folder: RunFolder) -> None:
    write_json(folder.recipe, {"name": "<b>mine</b>"})
    write_json(folder.environment, {"cores": 2})
    write_json(folder.evaluations, {"heldout": []})
    write_json(folder.forecast, {"steps": 2})
    write_state(folder, status="finished", step=2)
    writer = TelemetryWriter(folder.telemetry)
    writer.scalars(1, 0.1, 10, loss=3.0)
    writer.close()
    view = RunView.read(folder)
    assert (view.id, view.name, view.status, view.final) == (folder.id, "<b>mine</b>", "finished", True)
    assert view.state["step"] == 2
    assert view.environment == {"cores": 2}
    assert view.evaluations == {"heldout": [], "points": []}
    assert view.forecast == {"steps": 2}
    assert view.telemetry.series("loss") == ([1], [3.0])


@pytest.mark.parametrize(("parent", "called"), [("parent", "best"), ("gone", "then"), ("../parent", "then")])
def test_a_fork_names_its_parent_as_it_is_called_now(folder: RunFolder, parent: str, called: str) -> None:
    write_json(folder.origin, {"run": parent, "step": 7, "name": "then"})
    other = RunFolder(folder.path.parent / "parent")
    other.path.mkdir()
    write_json(other.recipe, {"name": "then"})
    label(other, name="best")
    origin = RunView.read(folder).origin
    assert origin is not None
    assert (origin.run, origin.name) == (parent, called)


def test_damaged_parts_read_as_empty(folder: RunFolder) -> None:
    for path in (folder.recipe, folder.environment, folder.evaluations, folder.state, folder.forecast):
        path.write_text("[1, 2")
    view = RunView.read(folder)
    assert (view.name, view.status, view.recipe, view.environment) == (folder.id, "lost", {}, {})
    assert view.telemetry.scalars == []
    assert view.forecast == {}


def test_following_reads_only_what_is_new(folder: RunFolder) -> None:
    reader = TelemetryReader(folder.telemetry)
    assert RunView.read(folder, reader).telemetry.scalars == []
    writer = TelemetryWriter(folder.telemetry, flush_seconds=0.05)
    for step in (1, 2):
        writer.scalars(step, 0.1, 10, loss=3.0)
        wait_until(lambda step=step: len(RunView.read(folder, reader).telemetry.scalars) == step, 5, f"record {step}")
    writer.close()


@pytest.mark.parametrize("junk", [None, 3.5, "x", [1], [{}, 2]])
def test_damaged_evaluations_read_as_absent(folder: RunFolder, junk: object) -> None:
    write_json(folder.evaluations, {"heldout": junk, "result": junk, "unigram_entropy": 6.0})
    found = RunView.read(folder).evaluations
    assert all(isinstance(point, dict) for point in found.get("heldout", []))
    assert "result" not in found
    assert found["unigram_entropy"] == 6.0
