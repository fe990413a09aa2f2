"""The demo, on a corpus and sizes that take seconds: real processes, real notebook, real report, every exit code."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from workbench import presets
from workbench.base.errors import RunError, RunFailed, TargetMissed
from workbench.client.run import Run
from workbench.client.run_list import runs as list_runs
from workbench.experiments import demo
from workbench.recipes.recipe import Recipe
from workbench.store import control
from workbench.store.folder import RunFolder
from workbench.store.state import take_lock, write_state
from workbench.store.view import RunView


@pytest.fixture(scope="module")
def recipes(learnable: list[str]) -> list[Recipe]:
    """The demo's two recipes, made small: same functions, same path."""
    slow, fast = (made(5.0).with_assignments(learnable) for made in (presets.demo_baseline, presets.demo_fast))
    return [slow.with_(budget={"amount": 15, "unit": "steps"}), fast.with_(budget={"amount": 80, "unit": "steps"})]


@dataclass(frozen=True)
class Demonstration:
    """Lines that the demo has printed, where its files are, and its ended runs."""

    text: str
    out: Path
    runs: Path
    views: list[RunView]


@pytest.fixture(scope="module")
def demonstration(recipes: list[Recipe], tmp_path_factory: pytest.TempPathFactory) -> Demonstration:
    """The whole demo, once; who looks at it belongs to the group "demo"."""
    folder, said = tmp_path_factory.mktemp("demo"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        # A cache of its own: other tests may have prepared this corpus already, and then there is nothing to say.
        patch.setenv("WORKBENCH_CACHE", str(folder / "cache"))
        views = demo.compare(recipes, folder / "out", folder / "runs", Console(file=said, width=150))
    return Demonstration(said.getvalue(), folder / "out", folder / "runs", views)


@pytest.mark.xdist_group("demo")
def test_demo_from_corpus_to_report(demonstration: Demonstration) -> None:
    text, out = demonstration.text, demonstration.out
    assert [view.status for view in demonstration.views] == ["finished", "finished"]
    for words in ("held-out loss (nats)", "word frequencies (nats)", "tokens/s", "ratio", "1.00x"):
        assert words in text, words
    assert "data: " in text
    assert text.count("launched ") == 2
    assert (out / "report.html").stat().st_size < 6_000_000
    notebook = (out / "demo.ipynb").read_text()
    outputs = [output for cell in json.loads(notebook)["cells"] for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    result = json.loads((out / "results-1.json").read_text())
    assert result["learned"] in ("neighbours", "context")
    assert "nats below" in result["learned_in_words"]
    assert result["learned_in_words"] in notebook
    assert result["learned_in_words"].partition(",")[0] in text, "which breaks longer lines"


@pytest.mark.xdist_group("demo")
def test_bars_on_a_terminal_and_a_missed_claim(
    recipes: list[Recipe], demonstration: Demonstration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same runs in the other order: the last one has to have learned, and has not."""
    ended = [Run(RunFolder(demonstration.runs / view.id)) for view in demonstration.views]
    monkeypatch.setattr(demo, "launch", lambda recipe, runs_dir: ended.pop())
    # A notebook of these runs was executed above, which takes two processes.
    executed: list[tuple[Path, list[str]]] = []
    monkeypatch.setattr(
        demo, "_execute", lambda notebook, target, parameters: executed.append((target, parameters["run_ids"]))
    )
    said = io.StringIO()
    console = Console(file=said, width=150, force_terminal=True)
    with pytest.raises(TargetMissed, match=r"less than 0\.5 nats below word frequencies"):
        demo.compare(recipes[::-1], tmp_path / "out", demonstration.runs, console)
    assert "━" in said.getvalue()
    assert (tmp_path / "out" / "report.html").is_file()
    assert executed == [(tmp_path / "out" / "demo.ipynb", [view.id for view in demonstration.views[::-1]])]


@pytest.mark.process
def test_a_failed_run_stops_the_other(recipes, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "prepare", lambda recipes, console: None)
    (tmp_path / "nothing.jsonl").write_text('{"text": "there"}\n{"other": "text"}\n')
    missing = recipes[0].with_(data={"paths": [str(tmp_path / "nothing.jsonl")]})
    endless = recipes[1].with_(budget={"amount": 1e6, "unit": "seconds"})
    with pytest.raises(RunFailed, match=r"nothing\.jsonl"):
        demo.compare([missing, endless], tmp_path / "out", tmp_path / "runs", Console(file=io.StringIO()))
    assert sorted(run.status for run in list_runs(tmp_path / "runs")) == ["failed", "stopped"]


@pytest.mark.extended
@pytest.mark.process
def test_ctrl_c_stops_both(recipes, tmp_path):
    """A real SIGINT to a real process, as a terminal sends it."""
    files = []
    for index, recipe in enumerate(recipes):
        files.append(str(recipe.with_(budget={"amount": 1e6, "unit": "seconds"}).save(tmp_path / f"{index}.json")))
    code = (
        "import signal, sys; from pathlib import Path; from rich.console import Console\n"
        "from workbench.experiments import demo; from workbench.recipes import presets\n"
        "from workbench.recipes.recipe import Recipe\n"
        # As in a terminal, also where the tests were started in the background, which ignores it.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"presets.demo_baseline, presets.demo_fast = [lambda s, f=f: Recipe.load(f) for f in {files!r}]\n"
        f"sys.exit(demo.main(['--out', {str(tmp_path / 'out')!r}, '--runs', {str(tmp_path / 'runs')!r}]))\n"
    )
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and [run.status for run in list_runs(tmp_path / "runs")] != ["running"] * 2:
        time.sleep(0.2)
    os.killpg(child.pid, signal.SIGINT)
    said, _ = child.communicate(timeout=60)
    assert child.returncode == 130
    assert said.count("stopping ") == 2
    assert [run.status for run in list_runs(tmp_path / "runs")] == ["stopped"] * 2


def test_wrong_request_is_one_line(capfd):
    assert demo.main(["--seconds", "0"]) == 2
    error = capfd.readouterr().err
    assert "budget.amount" in error
    assert "Traceback" not in error


def test_a_second_launch_that_fails_stops_the_first_run(recipes, tmp_path, monkeypatch):
    folder = RunFolder(tmp_path / "run-a")
    folder.path.mkdir()
    take_lock(folder)  # held until the test process ends: the run counts as alive
    write_state(folder, status="running")
    launched = [Run(folder)]

    def launch(recipe, runs_dir):
        if not launched:
            raise RunError("the disk is full")
        return launched.pop()

    monkeypatch.setattr(demo, "launch", launch)
    monkeypatch.setattr(demo, "STOP_PATIENCE_SECONDS", 0.1)
    with pytest.raises(RunError, match="disk is full"):
        demo.compare(recipes, tmp_path / "out", tmp_path, Console(file=io.StringIO()))
    assert [request.verb for request in control.pending(folder)] == ["stop"]
