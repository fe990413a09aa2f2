"""The worker process: states, requests through control files, signals, failures."""

from __future__ import annotations

import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.training.conftest import LiveRun
from workbench.recipes.recipe import Recipe
from workbench.store import control
from workbench.store.evaluations import read_evaluations
from workbench.store.folder import read_json
from workbench.store.state import actual_status
from workbench.training import worker
from workbench.training.worker import explain

Live = Callable[[Recipe], LiveRun]


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from workbench.training import worker
sys.exit(worker.main(sys.argv[1:]))
"""


@pytest.mark.process
def test_a_torch_that_cannot_be_loaded_is_said_by_the_state(tiny: Recipe, live: Live) -> None:
    run = live(tiny)
    done = subprocess.run([sys.executable, "-c", WITHOUT_TORCH, str(run.folder.path)], capture_output=True)
    assert (done.returncode, run.state.status) == (1, "failed"), done.stderr
    assert "import of torch halted" in run.state.error


def ask(run: LiveRun, verb: str, **arguments: object) -> dict[str, object]:
    """Send a request and wait until it is carried out; what takes long is accepted first."""
    request = control.send(run.folder, verb, **arguments)

    def carried_out(live: LiveRun) -> dict[str, object] | None:
        found = control.outcome(live.folder, request)
        return found if found and found["done"] is not None else None

    return run.until(carried_out)


@pytest.mark.process
def test_a_run_from_start_to_finish(tiny: Recipe, live: Live) -> None:
    run = live(tiny).start()
    assert run.wait() == 0, run.log
    assert run.state.status == "finished"
    assert (run.state.step, run.state.progress) == (20, 1.0)
    environment, evaluations = read_json(run.folder.environment), read_evaluations(run.folder)
    keys = {"python", "packages", "git", "host", "device", "cores", "threads", "gemm_flops", "peak_flops", "data"}
    assert (
        keys | {"attention", "parameters", "compile_seconds", "unigram_entropy", "bigram_entropy", "score"}
        <= environment.keys()
    )
    assert environment["gemm_flops"] > 1e8
    assert [point["step"] for point in evaluations["heldout"]] == [10, 20]
    # A small set is scored whole, during training and at the end.
    assert [point["evaluated_tokens"] for point in evaluations["heldout"]] == [evaluations["score"]["tokens"]] * 2
    result = evaluations["result"]
    assert result["steps"] == 20
    assert result["tokens"] == 20 * 16 * 32
    assert result["learned"] == "nothing yet"
    assert 0 < result["mfu"] < 1
    assert result["stopped_early"] is False
    kinds = [event["kind"] for event in run.telemetry.events]
    assert [kind for kind in kinds if kind not in ("checkpoint", "measurement")] == [
        "warm-up",
        "start",
        "evaluation",
        "evaluation",
        "finish",
    ]


@pytest.mark.process
def test_requests_of_a_running_worker(tiny: Recipe, live: Live) -> None:
    """One process, because each costs seconds of imports: pause, resume, set, evaluate, checkpoint, stop, SIGTERM."""
    run = live(tiny.with_(budget="1000000 steps")).fork()
    run.until(lambda r: r.steps_said > 3)
    assert run.state.status == "running"
    assert actual_status(run.folder) == "running"
    assert ask(run, "pause")["done"]
    run.until(lambda r: r.state.status == "paused")
    stood = run.state.step
    assert (run.folder.checkpoints / f"step-{stood}" / "manifest.json").exists()
    answer = ask(run, "set", path="optimizer.lr", value=7e-4)
    assert answer["done"], answer
    assert ask(run, "set", path="optimizer.lr", value=-1)["done"] is False
    refused = ask(run, "set", path="architecture.layers", value=2)
    assert refused["done"] is False
    assert "stop the run and launch" in str(refused["text"])
    assert run.state.step == stood
    assert ask(run, "resume")["text"] == "going on"
    run.until(lambda r: r.steps_said > stood)
    assert run.state.status == "running"
    assert "held-out loss" in str(ask(run, "evaluate")["text"])
    assert "saved step-" in str(ask(run, "checkpoint")["text"])
    assert run.process is not None
    run.process.send_signal(signal.SIGTERM)
    assert run.wait() == 0, run.log
    assert run.state.status == "stopped"
    assert read_json(run.folder.evaluations)["result"]["stopped_early"] is True
    assert (run.folder.checkpoints / f"step-{run.state.step}").is_dir()
    events = {event["kind"]: event for event in run.telemetry.events}
    assert {"pause", "resume", "knob", "checkpoint", "evaluation", "stop", "finish"} <= events.keys()
    assert events["knob"]["data"]["path"] == "optimizer.lr"
    assert events["stop"]["text"] == "stopped by SIGTERM"


@pytest.fixture
def here() -> Callable[..., int]:
    """``here(run)`` -> exit code of a worker that is this process."""
    return lambda run, *options: worker.main([str(run.folder.path), *options])


@pytest.mark.process
def test_a_failed_run_says_why(tiny: Recipe, live: Live, here: Callable[..., int]) -> None:
    # Weights change sign and grow a thousandfold at every step, until they overflow.
    absurd = {"lr": 100.0, "weight_decay": 10.0, "schedule": "linear"}
    run = live(tiny.with_(optimizer=absurd, budget="200 steps"))
    assert here(run, "--resume") == 1
    assert run.state.status == "failed"
    assert "lower optimizer.lr" in run.state.error
    assert run.state.exit_code == 1
    assert [event["kind"] for event in run.telemetry.events][-1] == "error"


@pytest.mark.process
def test_missing_text_fails_with_the_path(
    tiny: Recipe, live: Live, here: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    run = live(tiny.with_(data={"paths": [str(tmp_path / "absent" / "text")]}))
    assert here(run) == 1
    assert run.state.status == "failed"
    assert str(tmp_path / "absent" / "text") in run.state.error
    # What the request got wrong is no defect of the program: its log has the sentence, too, and no traceback.
    said = capsys.readouterr().err
    assert run.state.error in said
    assert "Traceback" not in said


def test_out_of_memory_names_the_knobs(tiny: Recipe) -> None:
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60)
    text = explain(caught.value, tiny.to_dict())
    assert "data.batch_size 16" in text
    assert re.search(r"tensor of 4294967296\.000 GiB found [\d.]+ GiB free, so at least 42949\d+\.\d+ GiB are", text)
    # In order of price, and nothing that is in force already or cannot be.
    places = [
        text.index(f"execution.{knob}") for knob in ("micro_batch_size 8", "recompute 'op", "recompute 'la", "optim")
    ]
    assert places == sorted(places)
    spared = tiny.with_(execution={"micro_batch_size": 1, "recompute": "layers"}, optimizer="lamb")
    text = explain(caught.value, spared.to_dict())
    assert "cheapest first: data.sequence_length less than 32. " in text
    assert not re.search("execution.(recompute|optimizer_states|micro_batch_size [^1])", text)


def little_memory() -> None:
    """So many addresses: what is asked beyond, the allocator does not get."""
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))


@pytest.mark.process
def test_a_run_that_finds_too_little_memory_says_how_much_is_missing(tiny: Recipe, live: Live) -> None:
    run = live(tiny.with_(data={"batch_size": 512}, architecture={"ffn_width": 131072}))
    assert run.fork(before=little_memory).wait() == 1, run.log
    assert run.state.status == "failed", run.log
    missing = re.search(r"so at least ([\d.]+) GiB are missing", run.state.error)
    assert missing is not None, run.state.error
    assert 0 < float(missing[1]) < 6
    # It would again: pages offer an edit in place of a resume, and so do words.
    assert run.state.repeats
    assert "would run out again: edit the recipe and launch it anew. What helps" in run.state.error
    assert "execution.micro_batch_size 256 or less" in run.state.error
