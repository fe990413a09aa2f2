"""``workbench forecast``: one JSON object, a few lines, and requests that are wrong."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.forecasting.machine_rates import RATES
from tests.plots.ahead import FOUND
from workbench import presets
from workbench.cli.command import main
from workbench.forecasting import calibration
from workbench.store.folder import RunFolder, write_json
from workbench.store.state import write_state

SMALL = ["--preset", "fast", "--set", "execution.compile=false", "--set", "execution.device=cpu"]


@pytest.fixture(autouse=True)
def _known_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    # Measuring has its own test; here it would take most of the time.
    monkeypatch.setattr(calibration, "measured", lambda mode, poll=None: RATES)


def test_json_holds_the_promised_names_and_nothing_else_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forecast", *SMALL, "--set", "architecture.width=128", "--price", "2", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    promised = {"parameters", "flops_per_token", "memory_bytes", "tokens_per_second", "seconds", "memory", "cost"}
    assert promised <= found.keys()
    assert found["parameters"] == 4096 * 128 + 4 * 12 * 128**2 + 9 * 128
    assert found["cost"] == pytest.approx(2 * found["seconds"] / 3600)


def test_text_names_the_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forecast", *SMALL, "--budget", "10 steps"]) == 0
    text = capsys.readouterr().out
    for word in ("10 steps", "parameters", "activations", "tokens/s", "note:"):
        assert word in text
    assert "cost" not in text


@pytest.fixture
def ended(tmp_path: Path) -> RunFolder:
    """A run that has ended, with the forecast that was kept at its launch."""
    folder = RunFolder(tmp_path / "runs" / "run-a")
    folder.telemetry.mkdir(parents=True)
    presets.fast().with_(execution={"compile": False, "device": "cpu"}, budget="200 steps").save(folder.recipe)
    write_state(folder, status="finished", step=200, tokens=819_200, seconds=50.0, tokens_per_second=16_384.0)
    write_json(folder.environment, {"parameters": 4_200_000})
    write_json(folder.forecast, FOUND)
    return folder


def test_a_run_stands_beside_the_forecast_that_was_kept(ended: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["forecast", "--run", "run-a", "--runs", str(ended.path.parent)]
    assert main(asked) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "fast: forecast and measured"
    assert lines[2].split() == ["parameters", "4.20M", "4.20M", "as", "forecast"]
    assert lines[4].split()[:6] == ["tokens/s", "8,192", "16,384", "2.0", "x", "no"]
    # Folded by the terminal's width.
    assert " ".join([*lines[4].split()[5:], *lines[5].split(), *lines[6].split()]) == (
        "no reason is recorded: measure this machine again"
    )
    assert main([*asked, "--price", "3600", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["run"], said["cost"]) == ("run-a", 100.0)
    assert [row["off"] for row in said["compared"]] == [0, 0, -0.5, 1, None]
    # Where none was kept, one is made of the run's own recipe.
    ended.forecast.unlink()
    assert main([*asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] == 4_196_608
    assert main([*asked, "--budget", "9 steps"]) == 2
    assert "leave out what changes it" in capsys.readouterr().err


def test_the_machine_is_measured_again_on_request(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ended: RunFolder
) -> None:
    asked: list[bool] = []

    def measured(mode: object, poll: object = None, *, fresh: bool = False) -> object:
        asked.append(fresh)
        return RATES

    monkeypatch.setattr(calibration, "measured", measured)
    assert main(["forecast", *SMALL, "--json"]) == 0
    assert main(["forecast", *SMALL, "--json"]) == 0
    assert asked == [False], "what is known is not measured again unasked"
    assert main(["forecast", *SMALL, "--json", "--measure"]) == 0
    assert asked == [False, True], "once more, and what it found is what the forecast then reads"
    assert "measuring this machine again" in capsys.readouterr().err
    assert main(["forecast", "--run", "run-a", "--runs", str(ended.path.parent), "--measure"]) == 2


@pytest.mark.parametrize(
    ("options", "word"), [(["--price", "-1"], "--price"), (["--set", "architecture.widht=3"], "width")]
)
def test_wrong_requests_say_why(options: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["forecast", *SMALL, *options, "--json"]) == 2
    assert word in json.loads(capsys.readouterr().out)["error"]


def test_a_limit_that_a_run_will_not_keep_is_said_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    limited = [*SMALL, "--set", "execution.recompute=budget", "--set"]
    assert main(["forecast", *limited, "execution.memory_gib=0.07"]) == 0
    said = capsys.readouterr().out
    assert "this run is expected to be refused at its start under a limit of 0.07 GiB: execution.memory_gib: " in said
    assert re.search(r"raise it by [\d.]+, or lower execution\.micro_batch_size", said)
    assert main(["forecast", *limited, "execution.memory_gib=8"]) == 0
    assert "refused" not in capsys.readouterr().out
