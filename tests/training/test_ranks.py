"""Two worker processes train one run: they take the steps of one, and end, pause and go on together."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from tests.training.conftest import Forked, LiveRun
from tests.training.test_worker import ask
from workbench.base.errors import DataError, RecipeError
from workbench.choices.data.prepare import prepare
from workbench.choices.execution.ranks import Ranks
from workbench.recipes.recipe import Recipe
from workbench.store.evaluations import read_evaluations
from workbench.store.folder import read_json
from workbench.training import checkpoint, signs
from workbench.training.assemble import assemble
from workbench.training.loop import Training

SIZE = 2


@dataclass
class Pair:
    """One run, and the two processes that train it; the first is the run's ``process``."""

    run: LiveRun
    processes: list[Forked]

    def wait(self) -> list[int]:
        """Return the exit codes."""
        return [process.wait(120) for process in self.processes]

    def last_steps(self) -> set[int]:
        """Return the steps after which the processes say that they end."""
        log = self.run.folder.log_of(1).read_text()
        said = re.findall(r"process 1 of 2 ends with the run, after step (\d+)", log)
        return {self.run.state.step, *map(int, said[-1:])}


Start = Callable[..., Pair]


@pytest.fixture
def start(live: Callable[..., LiveRun]) -> Iterator[Start]:
    """``start(recipe, *options)`` -> a Pair; ``run`` gives the run to go on with, ``before`` is called in both."""
    started: list[Forked] = []

    def _start(
        recipe: Recipe, *options: str, run: LiveRun | None = None, before: Callable[[], None] | None = None
    ) -> Pair:
        run = run or live(recipe)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        processes = []
        for rank in range(SIZE):
            there = {"RANK": str(rank), "WORLD_SIZE": str(SIZE), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            there["KEPT"] = f"{run.folder.path}/{rank}.pt"
            processes.append(Forked([str(run.folder.path), *options], run.folder.log, before, there))
        run.process = processes[0]
        started.extend(processes)
        return Pair(run, processes)

    yield _start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


def plain(tiny: Recipe, **changes: Any) -> Recipe:
    """Without dropout, whose draws differ between processes, and in two micro-batches."""
    return tiny.with_(architecture={"dropout": 0.0}, execution={"micro_batch_size": 8}).with_(**changes)


def weights(run: LiveRun, step: int = 20) -> dict[str, torch.Tensor]:
    return checkpoint.load(run.folder.checkpoints / f"step-{step}").tensors["model"]


def assert_as_alone(run: LiveRun, alone: LiveRun) -> None:
    """Same weights, losses of steps and held-out losses, to 1e-5."""
    ours, theirs = weights(run), weights(alone)
    for name, weight in theirs.items():
        torch.testing.assert_close(ours[name], weight, atol=1e-5, rtol=0)
    (steps, losses), (alone_steps, alone_losses) = (each.telemetry.series("loss") for each in (run, alone))
    assert steps == alone_steps
    assert losses == pytest.approx(alone_losses, abs=2e-5), "records have six digits"
    points, alone_points = (read_evaluations(each.folder)["points"] for each in (run, alone))
    assert [point["step"] for point in points] == [point["step"] for point in alone_points] == [10, 20]
    for point, other in zip(points, alone_points, strict=True):
        assert point["scores"]["heldout_loss"]["value"] == pytest.approx(
            other["scores"]["heldout_loss"]["value"], abs=1e-5
        )


def stopped_at_ten() -> None:
    """Every process of the run gets SIGTERM after its tenth step, as torchrun passes it on."""
    step = Training.step

    def then_stopped(self: Training) -> None:
        step(self)
        if self.progress.step == 10:
            os.kill(os.getpid(), signal.SIGTERM)

    Training.step = then_stopped  # type: ignore[method-assign]


def keeping_weights() -> None:
    """Every process of the run leaves its weights behind."""
    close = Training.close

    def then_kept(self: Training) -> None:
        close(self)
        torch.save(self.model.state_dict(), os.environ["KEPT"])

    Training.close = then_kept  # type: ignore[method-assign]


LONGER = [
    *({"objective": kind} for kind in ("causal", "hybrid", "diffusion", "replaced_token", "meta_controller")),
    *(
        # A larger eps: where Adam forgets its moments, a gradient near 0 is rounding, and makes a whole step.
        {"depth": kind, "architecture": {"layers": 4}, "optimizer": {"eps": 1e-5}}
        for kind in ("progressive_drop", "raptr", "freeze", "stacking", "multi_stage", "grow_width")
    ),
    {"objective": "masked_permuted"},
    {"objective": {"kind": "causal", "further_tokens": 2}},
    {"objective": {"kind": "phases", "optimizer_state": "fresh"}, "optimizer": {"eps": 1e-5}},
    {"data": {"batch_size": {"kind": "linear", "start": 8, "end": 16}}},
    {"data": {"order": "curriculum"}},
    {"execution": {"parallel": {"kind": "zero", "stage": 2}}},
    {"execution": {"parallel": {"kind": "zero", "stage": 3}}},
]


@pytest.mark.process
@pytest.mark.parametrize(
    "changes", [{"objective": "masked"}, *(pytest.param(each, marks=pytest.mark.extended) for each in LONGER)], ids=str
)
def test_two_processes_take_the_steps_of_one(
    tiny: Recipe, live: Callable[..., LiveRun], start: Start, changes: dict[str, Any]
) -> None:
    recipe = plain(tiny, **changes)
    alone, pair = live(recipe).fork(), start(recipe)
    assert (alone.wait(), pair.wait()) == (0, [0, 0]), pair.run.log
    assert_as_alone(pair.run, alone)
    assert pair.last_steps() == {20}
    environment = read_json(pair.run.folder.environment)
    assert environment["processes"] == 2
    (begin,) = [event for event in pair.run.telemetry.events if event["kind"] == "start"]
    assert "2 processes together" in begin["text"]


@pytest.mark.process
def test_a_stopped_run_goes_on_in_as_many_processes_and_in_another_number(
    tiny: Recipe, live: Callable[..., LiveRun], start: Start
) -> None:
    recipe = plain(tiny)
    alone, pair, single = live(recipe).fork(), start(recipe, before=stopped_at_ten), live(recipe)
    assert (alone.wait(), pair.wait()) == (0, [0, 0]), pair.run.log
    assert (pair.run.state.status, pair.last_steps()) == ("stopped", {10})
    assert single.fork(before=stopped_at_ten).wait() == 0
    fewer = live(recipe)
    shutil.copytree(pair.run.folder.path, fewer.folder.path, dirs_exist_ok=True)
    assert fewer.fork("--resume").wait() == 0
    assert_as_alone(fewer, alone)
    for run in (pair.run, single):
        assert start(recipe, "--resume", run=run).wait() == [0, 0], run.log
        assert_as_alone(run, alone)


@pytest.mark.process
def test_they_agree_on_seconds(tiny: Recipe, start: Start) -> None:
    pair = start(plain(tiny, budget={"amount": 1, "unit": "seconds", "evaluations": 2}))
    assert pair.wait() == [0, 0], pair.run.log
    assert pair.run.state.status == "finished"
    assert len(pair.last_steps()) == 1


@pytest.mark.process
def test_requests_reach_both(tiny: Recipe, start: Start) -> None:
    pair = start(
        plain(tiny, budget="1000000 steps", optimizer={"schedule": {"kind": "linear", "end": 1.0}}),
        before=keeping_weights,
    )
    run = pair.run
    run.until(lambda r: r.steps_said > 3)
    assert ask(run, "pause")["done"]
    run.until(lambda r: r.state.status == "paused")
    stood = run.state.step
    assert ask(run, "set", path="optimizer.lr", value=7e-4)["done"]
    assert "held-out loss" in str(ask(run, "evaluate")["text"])
    assert ask(run, "resume")["done"]
    run.until(lambda r: r.steps_said > stood)
    assert ask(run, "stop")["done"]
    assert pair.wait() == [0, 0], run.log
    assert (run.state.status, pair.last_steps()) == ("stopped", {run.state.step})
    assert run.telemetry.scalars[-1]["lr"] == pytest.approx(7e-4)
    first, second = (torch.load(run.folder.path / f"{rank}.pt") for rank in range(SIZE))
    assert all(torch.equal(weight, second[name]) for name, weight in first.items()), "under the knob that was turned"


def breaking_the_second() -> None:
    """The second process has a weight that is not finite after its third step."""
    step = Training.step

    def then_broken(self: Training) -> None:
        step(self)
        if self.engine.ranks.rank == 1 and self.progress.step == 3:
            next(iter(self.model.parameters())).data.fill_(torch.nan)

    Training.step = then_broken  # type: ignore[method-assign]


@pytest.mark.process
def test_what_ends_one_of_them_ends_the_run(tiny: Recipe, start: Start) -> None:
    pair = start(plain(tiny, budget="1000000 steps"))
    pair.run.until(lambda r: r.steps_said > 3)
    pair.processes[1].kill()
    assert pair.wait() == [1, -signal.SIGKILL]
    assert pair.run.state.status == "failed"
    assert "another process of this run has ended" in pair.run.state.error
    broken = start(plain(tiny), before=breaking_the_second)
    assert broken.wait() == [1, 1]
    assert broken.run.state.error.startswith("the loss became nan at step 4")


def impatient() -> None:
    """A process that keeps the others waiting is named within seconds."""
    for name, seconds in (("EVERY_SECONDS", 0.2), ("SILENT_SECONDS", 1.5), ("PATIENCE_SECONDS", 2.0)):
        setattr(signs, name, seconds)


@pytest.mark.process
def test_a_process_that_hangs_is_named_until_it_goes_on(tiny: Recipe, start: Start) -> None:
    pair = start(plain(tiny, budget="1000000 steps"), before=impatient)
    run = pair.run
    run.until(lambda r: r.steps_said > 3)
    pair.processes[1].send_signal(signal.SIGSTOP)
    run.until(lambda r: "waiting for process 1 of 2" in r.state.message)
    run.until(lambda r: r.state.message.endswith("no sign of life from there"))
    stood = run.state.step
    pair.processes[1].send_signal(signal.SIGCONT)
    run.until(lambda r: r.state.step > stood and not r.state.message)
    assert ask(run, "stop")["done"]
    assert pair.wait() == [0, 0], run.log
    assert all({"waiting_ms/0", "waiting_ms/1"} <= record.keys() for record in run.telemetry.scalars)


@pytest.mark.process
@pytest.mark.extended
@pytest.mark.parametrize("parallel", [{"kind": "tensor"}, {"kind": "zero", "stage": 3}], ids=str)
def test_hanging_and_dying_inside_a_pass_are_told(tiny: Recipe, start: Start, parallel: dict[str, Any]) -> None:
    pair = start(plain(tiny, budget="1000000 steps").with_(execution={"parallel": parallel}), before=impatient)
    run = pair.run
    run.until(lambda r: r.steps_said > 3)
    pair.processes[1].send_signal(signal.SIGSTOP)
    run.until(lambda r: r.state.message.endswith("no sign of life from there"))
    pair.processes[1].kill()
    assert pair.wait() == [1, -signal.SIGKILL]
    assert "another process of this run has ended" in run.state.error


@pytest.mark.process
@pytest.mark.extended
def test_layers_are_measured_of_projections_that_are_shared_out(
    tiny: Recipe, live: Callable[..., LiveRun], start: Start
) -> None:
    recipe = plain(tiny, architecture={"dropout": 0.1}, depth="progressive_drop")
    alone, pair = live(recipe).fork(), start(recipe.with_(execution={"parallel": "tensor"}))
    assert (alone.wait(), pair.wait()) == (0, [0, 0]), pair.run.log
    assert_as_alone(pair.run, alone)
    ours, theirs = (run.telemetry.layers for run in (pair.run, alone))
    assert [record["step"] for record in ours] == [record["step"] for record in theirs]
    for record, other in zip(ours, theirs, strict=True):
        assert record.keys() == other.keys()
        for name in ("grad_norm", "update_ratio", "activation_rms", "attention_entropy"):
            for value, expected in zip(record.get(name, ()), other.get(name, ()), strict=True):
                assert value == pytest.approx(expected, rel=1e-3), (name, record["step"])
    assert pair.run.telemetry.series("sent_mib")[1][0] > 0


def slow_second() -> None:
    """Let each step of the second process take 30 ms longer, many times what the first takes."""
    step = Training._gradients

    def slowly(self: Training, *args: Any) -> Any:
        if self.engine.ranks.rank == 1:
            time.sleep(0.03)
        return step(self, *args)

    Training._gradients = slowly  # type: ignore[method-assign]


@pytest.mark.process
@pytest.mark.extended
def test_a_slow_process_changes_nothing_but_the_time(tiny: Recipe, live: Callable[..., LiveRun], start: Start) -> None:
    recipe = plain(tiny)
    alone, pair = live(recipe).fork(), start(recipe, before=slow_second)
    assert (alone.wait(), pair.wait()) == (0, [0, 0]), pair.run.log
    assert_as_alone(pair.run, alone)
    assert pair.run.telemetry.series("waited_ms")[1]
    # The first waits for the second, and is seen to.
    waited = [np.median(pair.run.telemetry.series(f"waiting_ms/{rank}")[1][1:]) for rank in range(SIZE)]
    assert waited[0] > 0.5
    assert waited[1] == pytest.approx(0, abs=0.1 * waited[0])
    assert not any("waiting_ms/0" in record for record in alone.telemetry.scalars)


@pytest.mark.process
def test_what_one_process_alone_can_do_is_refused_before_the_first_step(tiny: Recipe, start: Start) -> None:
    pair = start(plain(tiny, optimizer="sophia"))
    assert pair.wait() == [1, 0]
    assert "optimizer.kind: 'sophia' takes gradients of its own" in pair.run.state.error
    assert pair.run.telemetry.scalars == []
    with pytest.raises(RecipeError, match=r"data\.batch_rule: 'simigrad' compares gradients"):
        tiny.with_(data={"batch_rule": "simigrad"}).check_together(SIZE)
    with pytest.raises(RecipeError, match=r"execution\.kind: 'auto' trains in one process; use 'native'"):
        tiny.with_(execution="auto").check_together(SIZE)
    with pytest.raises(RecipeError, match=r"data\.batch_size: 16 rows at a time cannot be shared by 17 processes"):
        tiny.check_together(17)
    tiny.check_together(16)


def test_too_few_rows_for_the_processes(tiny: Recipe) -> None:
    engine = tiny.engine()
    engine.join(Ranks(0, 32))
    made = assemble(tiny, prepare(tiny.data, say=lambda line: None), engine)
    training = Training(tiny, made)
    with pytest.raises(DataError, match="micro-batches of 16 rows cannot be shared by 32 processes"):
        training.batches.next(0, training.batch_size.shape(training.progress))
    training.close()


@pytest.mark.process
@pytest.mark.extended
def test_torchrun_trains_a_run(tiny: Recipe, live: Callable[..., LiveRun]) -> None:
    run, alone = live(plain(tiny)), live(plain(tiny)).fork()
    command = ["torch.distributed.run", "--nproc-per-node", "2", "-m", "workbench.training.worker"]
    subprocess.run([sys.executable, "-m", *command, str(run.folder.path)], check=True, timeout=180)
    assert alone.wait() == 0
    assert_as_alone(run, alone)
