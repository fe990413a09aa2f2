"""Start-up is measured in fresh processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tiny_runs import tiny_recipe
from workbench.bench.startup import COMMANDS, first_point, measure
from workbench.client.run_list import runs


@pytest.mark.process
def test_each_command_is_timed(tmp_path: Path) -> None:
    seconds = measure(1, str(tmp_path))
    assert set(seconds) == set(COMMANDS)
    assert seconds["import workbench"]["median"] > 0


@pytest.mark.extended
@pytest.mark.process
def test_a_launch_is_timed_to_its_first_point(corpus: Path, tmp_path: Path) -> None:
    seconds, stages = first_point(tiny_recipe(corpus, steps=100_000), tmp_path)
    (run,) = runs(tmp_path)
    assert (run.status, bool(run.telemetry().scalars)) == ("stopped", True)
    assert list(stages) == ["loading torch", "preparing data", "building the model", "warming up"]
    assert 0 < sum(stages.values()) < seconds
    (start,) = (event for event in run.telemetry().events if event["kind"] == "start")
    assert "before that: loading torch " in start["text"]
