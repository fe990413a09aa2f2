"""``workbench train`` and ``launch`` with real trainers."""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.run_folders import processes_of
from tests.tiny_runs import tiny_recipe, wait_until
from workbench import presets
from workbench.base.errors import DataError
from workbench.choices.data.files import Files
from workbench.cli.command import main
from workbench.cli.training import recipe_from, summary, text_edits
from workbench.cli.verbs import verb_parser
from workbench.client import run as run_of_workbench
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.client.run_list import runs
from workbench.launchers import fork_server
from workbench.store.folder import RunFolder, read_json, write_json
from workbench.store.state import write_state

KEYS = {"run", "state", "steps", "tokens", "seconds", "tokens_per_second", "heldout_loss", "unigram_entropy"}


@pytest.mark.usefixtures("reports")
@pytest.mark.process
def test_train_to_the_end_as_json_and_miss_a_target(
    corpus: Path, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    recipe = tiny_recipe(corpus).save(tmp_path / "recipe.json")
    asked = [
        "train", "--recipe", str(recipe), "--runs", str(root), "--json", "--budget", "12 steps", "--seed", "5",
        "--set", "optimizer.lr=1e-4", "--name", "mine", "--target-loss", "0.1",
    ]  # fmt: skip
    assert main(asked) == 3
    said = capsys.readouterr()
    assert "target missed" in said.err
    result = json.loads(said.out)
    assert set(result) >= KEYS
    assert (result["state"], result["steps"], result["target_met"]) == ("finished", 12, False)
    assert result["tokens"] == 12 * 8 * 32
    run = Run(result["run"], root)
    assert run.name == "mine"
    assert (run.recipe.seed, run.recipe.optimizer.lr) == (5, 1e-4)
    # Nothing of it is left running, and the report was awaited.
    assert processes_of(root) == []
    assert run.folder.report.exists()

    # Here: another process would load torch once more, and so would its child, which tests/exporting starts.
    def in_this_process(folder: RunFolder, module: str, *arguments: str) -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            assert importlib.import_module(module).main(list(arguments)) == 0

    monkeypatch.setattr(run_of_workbench, "run_module", in_this_process)
    assert main(["export", run.id, str(tmp_path / "model"), "--runs", str(root), "--json"]) == 0
    target = Path(json.loads(capsys.readouterr().out)["folder"])
    assert target == tmp_path / "model"
    assert {"model.safetensors", "tokenizer.json", "recipe.json"} <= {path.name for path in target.iterdir()}


@pytest.mark.process
def test_train_says_where_the_time_goes(
    corpus: Path, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tiny_recipe(corpus).save(tmp_path / "recipe.json")
    train = ["train", "--recipe", str(recipe), "--runs", str(root), "--profile", "--budget"]
    assert main([*train, "40 steps"]) == 2
    few = capsys.readouterr().err
    assert "--profile looks into 40 steps, and the budget ends after 40; give it at least 41" in few
    assert not root.exists() or not any(root.iterdir()), "refused before a run exists"
    assert main([*train, "44 steps"]) == 0
    said = capsys.readouterr().out
    table = said.splitlines()
    assert any(line.startswith("products ") for line in table)
    assert any("tokens/s, MFU " in line for line in table)
    (folder,) = (path for path in root.iterdir() if (path / "recipe.json").exists())
    assert sum(json.loads((folder / "profile.json").read_text())["parts"].values()) == pytest.approx(1.0)
    assert main(["profile", folder.name, "--runs", str(root)]) == 0
    assert capsys.readouterr().out in said, "again, though it has ended"


def test_text_without_a_letter_is_named(tmp_path: Path) -> None:
    (tmp_path / "nothing.txt").touch()
    with pytest.raises(DataError, match=r"--text: every file of it is empty: .*nothing\.txt"):
        text_edits([str(tmp_path / "nothing.txt")])


def test_text_and_budget_change_the_recipe_and_nothing_else_of_it(tmp_path: Path) -> None:
    for name in ("a.txt", "b.md"):
        (tmp_path / name).write_text("some text")
    arguments = ["train", "--preset", "fast", "--text", str(tmp_path / "a.txt"), "--text", str(tmp_path)]
    given = ["--budget", "400 steps", "--set", "budget.checkpoint_seconds=1", "--set", "data.document_characters=500"]
    recipe = recipe_from(verb_parser().parse_args([*arguments, *given]))
    # Knobs of files that the embedded corpus lacks are as they are declared.
    own = {f"data.{name}": value for name, value in Files(paths=["a"]).model_dump(mode="json").items()}
    found = {path: after for path, (_, after) in presets.fast().diff(recipe).items()}
    assert {path: after for path, after in found.items() if after != own.get(path, ...) or path == "data.kind"} == {
        "budget.amount": 400, "budget.checkpoint_seconds": 1, "data.kind": "files", "data.packages": None,
        "data.paths": [str(tmp_path / "a.txt"), str(tmp_path)], "data.document_characters": 500,
    }  # fmt: skip


@pytest.mark.parametrize("verb", ["train", "launch"])
def test_text_that_is_too_small_is_refused_before_a_run_exists(
    tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = tmp_path / "small.txt"
    text.write_text("A few words of my own.\n\n" * 40)
    asking = [verb, "--preset", "fast", "--text", str(text), "--runs", str(tmp_path / "runs")]
    assert main([*asking, "--set", "data.document_characters=30"]) == 2
    assert "the corpus is too small" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("verb", ["launch", "train"])
@pytest.mark.parametrize("started", [True, False])
def test_a_launch_lets_go_of_the_trainer_that_it_held_and_of_no_other(
    verb: str, started: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    released: list[None] = []
    monkeypatch.setattr(fork_server, "hold", lambda: started)
    monkeypatch.setattr(fork_server, "release", lambda: released.append(None))
    assert main([verb, "--preset", "fsat"]) == 2
    assert bool(released) is started


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.extended)])
@pytest.mark.process
def test_an_interrupt_stops_with_a_checkpoint(corpus: Path, root: Path, tmp_path: Path, number: signal.Signals) -> None:
    recipe = tiny_recipe(corpus, steps=100_000).save(tmp_path / "recipe.json")
    command = [sys.executable, "-m", "workbench", "train", "--recipe", str(recipe), "--runs", str(root)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_until(lambda: bool(runs(root)) and runs(root)[0].state.step >= 1, 90, "the first step")
    # As a terminal does it: to the whole foreground process group.
    os.killpg(child.pid, number)
    if number == signal.SIGTERM:
        # As `timeout` does it: to the process, and to its group.
        wait_until(lambda: any("stop" in path.name for path in runs(root)[0].folder.control.iterdir()), 60, "the stop")
        os.killpg(child.pid, number)
    out, said = child.communicate(timeout=90)
    assert child.returncode == 1, "it is not what was asked for: a script does not go on"
    assert "stopping after this step, with a checkpoint" in said
    assert ("SIGTERM: stopping" in said, "Ctrl-C" in said) == (number == signal.SIGTERM, number == signal.SIGINT)
    assert "stopped:" in out
    (run,) = runs(root)
    assert run.status == "stopped"
    assert any(path.name.startswith("step-") for path in run.folder.checkpoints.iterdir())
    assert processes_of(root) == []


@pytest.mark.extended
@pytest.mark.process
def test_several_processes_train_together(
    corpus: Path, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tiny_recipe(corpus, steps=8).save(tmp_path / "recipe.json")
    asked = ["train", "--recipe", str(recipe), "--runs", str(root), "--json"]
    assert main([*asked, "--processes", "0"]) == 2
    assert "processes: Input should be greater than or equal to 1" in capsys.readouterr().err
    assert main([*asked, "--processes", "2"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["state"], result["steps"]) == ("finished", 8)
    assert read_json(Run(result["run"], root).folder.environment)["processes"] == 2
    assert processes_of(root) == []


@pytest.mark.process
def test_launch_prints_the_id_and_returns(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "fieldless.jsonl"
    text.write_text('{"text": "there"}\n{"other": "text"}\n')
    recipe = tiny_recipe(text).save(tmp_path / "recipe.json")
    assert main(["launch", "--recipe", str(recipe), "--runs", str(root), "--set", "optimizer.lr=50"]) == 0
    said = capsys.readouterr()
    assert "warning: optimizer.lr 50 is 50,000 times what adamw begins with (0.001)" in said.err
    assert main(["watch", said.out.strip(), "--runs", str(root)]) == 1
    watched = capsys.readouterr().err
    assert "fieldless" in watched
    assert "Traceback" not in watched


@pytest.mark.extended
@pytest.mark.process
def test_a_fork_goes_on_from_the_command_line(
    corpus: Path, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parent = launch(tiny_recipe(corpus, steps=6), runs_dir=root)
    parent.wait_blocking(timeout=120)
    of_parent = ["fork", parent.id, "--runs", str(root)]
    assert main(of_parent) == 2
    assert "6 steps are spent already: the checkpoint stands at 6 steps" in capsys.readouterr().err
    assert main([*of_parent, "--budget", "9 steps", "--set", "architecture.layers=3"]) == 2
    assert "a fork cannot change architecture.layers" in capsys.readouterr().err
    assert main([*of_parent, "--checkpoint", "4", "--budget", "9 steps"]) == 2
    assert "no checkpoint of step 4; it has those of 6" in capsys.readouterr().err
    assert main([*of_parent, "--set", "optimizer.lr"]) == 2
    assert len(runs(root)) == 1, "nothing half-made stays behind"
    capsys.readouterr()
    asked = ["--checkpoint", "6", "--budget", "9 steps", "--set", "optimizer.beta1=0.8", "--name", "again", "--json"]
    assert main([*of_parent, *asked]) == 0
    said = json.loads(capsys.readouterr().out)
    assert (said["parent"], said["fresh"]) == ({"run": parent.id, "step": 6}, ["optimizer.beta1"])
    assert said["diff"]["budget.amount"] == [6.0, 9.0]
    fork = Run(said["run"], root)
    assert fork.wait_blocking(timeout=120)["steps"] == 9
    assert fork.telemetry().series("loss")[0] == [7, 8, 9]


def test_what_a_run_ended_with_says_of_how_much_text_its_score_is(root: Path) -> None:
    folder = RunFolder(root / "20260101-000000-a-000000-0000")
    folder.path.mkdir(parents=True)
    write_json(folder.recipe, {"name": "mine"})
    write_state(folder, status="stopped")
    cancelled = summary(Run(folder), Run(folder).result)
    assert cancelled.splitlines() == ["mine cancelled before it began", f"run    {folder.path}"]
    write_json(folder.evaluations, {"heldout": [{"step": 4, "loss": 3.5, "evaluated_tokens": 1024}]})
    for status, of in (("stopped", "a part, 1,024 tokens"), ("finished", "all 1,024 tokens")):
        write_state(folder, status=status, step=4, started=1.0)
        assert f"held-out loss 3.5000 nats ({of});" in summary(Run(folder), Run(folder).result)
    points = {"heldout": [{"step": 4, "loss": 3.5, "evaluated_tokens": 1024}]}
    write_json(folder.evaluations, points | {"score": {"tokens": 1024}})
    write_state(folder, status="stopped", step=4, started=1.0)
    assert "(all 1,024 tokens)" in summary(Run(folder), Run(folder).result), "a small set is scored whole throughout"
    write_json(folder.evaluations, {})
    assert "held-out loss not measured; word frequencies" in summary(Run(folder), Run(folder).result)
