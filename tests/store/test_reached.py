"""Steps, tokens and seconds of a run are the same wherever they are told, however it ended."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.run_folders import write_records
from workbench.client.comparison import compare
from workbench.client.run import Run
from workbench.client.summary import describe, summary
from workbench.jupyter.feed.track import Track
from workbench.plots.facts import facts
from workbench.store.folder import RunFolder, write_json
from workbench.store.reached import beyond, budget_share, reached, tail
from workbench.store.result import Result
from workbench.store.state import RunState, read_state, take_lock, write_state
from workbench.telemetry.streams import TelemetryWriter


@pytest.fixture
def run(folder: RunFolder) -> RunFolder:
    """Its state stands at step 265, its curves end at 270."""
    write_json(folder.recipe, {"name": "a", "budget": {"amount": 1000, "unit": "steps"}})
    write_state(folder, status="running", step=265, tokens=265 * 512, seconds=50.0, progress=0.265, loss=3.0)
    write_records(folder, step=270)
    return folder


def told(run: RunFolder) -> dict[str, tuple[int, int]]:
    """Steps and tokens by the place that tells them."""
    numbers = {row["label"]: row["values"][0] for row in compare([run])["numbers"]}
    result, page, state = Run(run).result, Track(run), Run(run).state
    whole = Result.of(Run(run).view())
    page.poll()
    return {
        "compare": (numbers["steps"], numbers["tokens"]),
        "result": (result.steps, result.tokens),
        "result with telemetry": (whole.steps, whole.tokens),
        "page": (page.status["step"], page.status["tokens"]),
        "state": (state.step, state.tokens),
    }


@pytest.mark.parametrize(("alive", "step"), [(True, 265), (False, 270)])
def test_every_place_tells_the_same_steps_and_tokens(run: RunFolder, alive: bool, step: int) -> None:
    lock = take_lock(run) if alive else None
    try:
        assert set(told(run).values()) == {(step, step * 512)}
        assert Run(run).state.status == Run(run).status == Run(run).view().state["status"]
        assert Run(run).status == ("running" if alive else "lost")
        assert (summary(run)["step"], describe(run)["step"]) == (step, str(step))
        assert facts(Run(run).view())["steps"] == str(step)
    finally:
        if lock is not None:
            os.close(lock)


def test_the_last_record_counts_where_it_is_beyond_the_state(run: RunFolder) -> None:
    found = reached(run, read_state(run))
    assert (found.step, found.tokens, found.seconds) == (270, 270 * 512, 54.0)
    assert (found.progress, found.loss, found.status) == (0.27, 2.5, "lost")
    later = RunState(status="running", step=271)
    assert reached(run, later) == replace(later, status="lost"), "of a step that is not on record"


def test_records_that_an_attempt_took_back_count_no_more(run: RunFolder) -> None:
    writer = TelemetryWriter(run.telemetry, flush_seconds=None)
    writer.rewind(0)
    writer.close()
    assert beyond(run, RunState(status="running", step=0)) == {}


def test_a_run_without_records_stands_where_its_state_says(tmp_path: Path) -> None:
    assert beyond(RunFolder(tmp_path), RunState(step=3)) == {}


@pytest.mark.parametrize(
    ("budget", "share"), [({"amount": 40, "unit": "tokens"}, 0.25), ({"amount": 8, "unit": "steps"}, 0.5)]
)
def test_a_share_is_of_what_the_budget_counts(budget: dict[str, object], share: float) -> None:
    assert budget_share(budget, {"step": 4, "tokens": 10, "seconds": 1.0}) == share


@pytest.mark.parametrize("budget", [None, {}, {"amount": 0, "unit": "steps"}, {"amount": 4, "unit": "epochs"}])
def test_nobody_knows_the_share_of_a_budget_that_is_none(budget: object) -> None:
    assert not budget_share(budget, {"step": 4}) >= 0


@pytest.mark.parametrize("lines", [0, 1, 3, 2_000, 10_000])
def test_the_end_is_what_reading_all_of_it_gives(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"line {number} {'x' * 90}\n" for number in range(5_000)))
    assert tail(path, lines).splitlines() == path.read_text().splitlines()[max(0, 5_000 - lines) :]


def test_odd_logs(tmp_path: Path) -> None:
    assert tail(tmp_path / "gone", 3) == ""
    (tmp_path / "log").write_bytes(b"\xff\x00 no newline")
    assert tail(tmp_path / "log", 3) == "\ufffd\x00 no newline"


def test_only_what_follows_a_place_is_read_and_never_a_line_of_gigabytes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("of an earlier attempt\nshort\n")
    assert tail(log, 9, len("of an earlier attempt\n")) == "short"
    assert tail(log, 9, 1000) == ""
    log.write_text("bar\r" * 100_000)
    assert len(tail(log, 2)) <= 2 * 4096
