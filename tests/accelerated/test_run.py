"""A user's own model and loader under the loop, run folder and choices of recipes: whole runs in this process."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

import workbench as wb
from tests.accelerated.models import (
    MostlyFrozen,
    PairedStack,
    Start,
    bert,
    cross_entropy,
    points,
    sentences,
    shuffled,
    stacked,
    stop_after,
)
from tests.launchers.queue.conftest import new_run, queue  # noqa: F401  (the same fixtures as for the queue)
from workbench.accelerated.run import AcceleratedRun
from workbench.base.errors import RecipeError, RunError, RunFailed
from workbench.launchers.queue.outlook import training_now
from workbench.launchers.queue.queue_folder import Queue
from workbench.launchers.queue.turn import enter
from workbench.store.checkpoints import checkpoints
from workbench.store.folder import RunFolder
from workbench.training.loop import step_seed

# A run asks git for the revision that it runs.
pytestmark = pytest.mark.process
NewRun = Callable[..., RunFolder]
CONSTANT = {"kind": "linear", "start": 1.0, "end": 1.0}
ADAMW = {"kind": "adamw", "lr": 1e-2, "beta2": 0.999, "weight_decay": 0.0, "schedule": CONSTANT, "clip_norm": None}
EIGHT = {"amount": 8, "unit": "steps", "evaluations": 2}


FAST = {"lr": 1e-2, "weight_decay": 0.0}
"""What :data:`ADAMW` is to torch."""


class TestTheSameMathematics:
    @pytest.mark.parametrize("kind", ["plain torch", "transformers"])
    def test_without_an_optimizer_it_is_the_loop_that_people_write(self, kind: str, start: Start) -> None:
        if kind == "transformers":
            ours, theirs, batches = bert(), bert(), sentences()
            loss: Any = lambda model, batch: model(**batch).loss  # noqa: E731
            run = start(ours, batches, budget="40 steps")
        else:
            ours, theirs, batches, loss = stacked(), stacked(), list(DataLoader(points(), batch_size=16)), cross_entropy
            run = start(ours, batches, loss=loss, budget="40 steps")
        run.wait()
        assert run.telemetry().series("loss")[1] == pytest.approx(by_hand(theirs, batches, loss, steps=40), abs=1e-6)
        for name, value in theirs.state_dict().items():
            torch.testing.assert_close(ours.state_dict()[name], value, rtol=0, atol=1e-5, msg=name)

    def test_a_knob_without_a_kind_is_one_of_that_optimizer(self, start: Start) -> None:
        ours, theirs, batches = stacked(), stacked(), list(DataLoader(points(), batch_size=16))
        run = start(ours, batches, loss=cross_entropy, optimizer={"lr": 5e-3}, budget="10 steps")
        run.wait()
        losses = by_hand(theirs, batches, cross_entropy, {"lr": 5e-3}, steps=10)
        assert run.telemetry().series("loss")[1] == pytest.approx(losses, abs=1e-6)

    def test_transformers_model(self, start: Start) -> None:
        ours, theirs = bert(), bert()
        run = start(ours, sentences(), optimizer=ADAMW, budget="4 epochs")
        assert run.wait()["tokens"] == 4 * 5 * (4 * 12 + 4 * 9), "padding is no token"
        losses = by_hand(theirs, sentences(), lambda model, batch: model(**batch).loss, FAST)
        assert run.telemetry().series("loss")[1] == pytest.approx(losses, abs=1e-6)
        assert run.recipe.architecture.stack == "bert.encoder.layer"

    def test_micro_batches(self, start: Start) -> None:
        losses = []
        for rows in (None, 4):
            model = stacked()
            model.mean = nn.Identity()  # whose statistics are of a micro-batch
            run = start(
                model.eval(), list(DataLoader(points(), batch_size=16)), loss=lambda m, b: cross_entropy(m.eval(), b),
                optimizer=ADAMW, budget="8 steps", execution={"micro_batch_size": rows},
            )  # fmt: skip
            run.wait()
            losses.append(run.telemetry().series("loss")[1])
        assert losses[0] == pytest.approx(losses[1], abs=1e-5)


def by_hand(
    model: nn.Module, batches: list[Any], loss: Callable[..., torch.Tensor], adamw: dict[str, float] | None = None,
    steps: int = 20,
) -> list[float]:  # fmt: skip
    """The loop that people write, on the draws of ours."""
    optimizer = torch.optim.AdamW(model.parameters(), **(adamw or {}))
    losses = []
    model.train()
    for step in range(steps):
        torch.manual_seed(step_seed(0, step))
        value = loss(model, batches[step % len(batches)])
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(value.item())
    return losses


class TestQueue:
    def test_it_waits_for_nobody_and_is_counted_as_long_as_it_trains(
        self, start: Start, queue: Queue, new_run: NewRun, capsys: pytest.CaptureFixture[str]  # noqa: F811
    ) -> None:  # fmt: skip
        other = enter(new_run("a", status="running"))
        loss = stop_after(5)
        loss.run = run = start(
            stacked(), list(DataLoader(points(), batch_size=16)), loss=loss, budget="1M steps", execution={"threads": 1}
        )
        assert f"{run.id}: 2 runs train here with 2 threads on 1 core, so each is slower" in capsys.readouterr().out
        assert [each.run.id for each in training_now()] == [other.ticket.run.id, run.id]
        waiting = enter(new_run("b"))
        other.leave()
        assert not waiting.claim()
        run.wait()
        assert waiting.claim()
        waiting.leave()


class TestDepth:
    def test_layers_are_dropped_where_the_plan_says(self, start: Start) -> None:
        run = start(
            bert(), sentences(), optimizer="lans", depth={"kind": "progressive_drop", "theta": 0.5, "gamma": 100.0},
            budget="20 steps", execution={"layers_every": 1},
        )  # fmt: skip
        run.wait()
        plans = [run.recipe.depth.plan(4, _progress(run, step), 0) for step in range(20)]
        records = run.telemetry().layers
        assert [record["ran"] for record in records] == [[float(runs) for runs in plan.runs] for plan in plans]
        for record in records:
            for ran, norm, rms in zip(record["ran"], record["grad_norm"], record["activation_rms"], strict=True):
                assert (norm is not None) == (rms is not None) == bool(ran)
        assert 0 < sum(sum(record["ran"]) for record in records) < 80
        flops = run.telemetry().series("flops")[1]
        assert flops[1] - flops[0] < flops[0], "a dropped layer costs nothing"

    def test_frozen_layers_rest_and_what_was_frozen_before_stays_so(self, start: Start) -> None:
        model = stacked()
        model.first.requires_grad_(False)
        before = {name: value.clone() for name, value in model.named_parameters()}
        run = start(model, shuffled(), loss=cross_entropy, depth={"kind": "freeze", "share": 0.5}, budget="5 steps")
        run.wait()
        moved = {name for name, value in model.named_parameters() if not torch.equal(value, before[name])}
        assert not any(name.startswith(("first", "blocks.0", "blocks.1")) for name in moved)
        assert {name for name in before if name.startswith(("blocks.2", "blocks.3", "last"))} <= moved
        assert [p.requires_grad for p in model.first.parameters()] == [False]
        assert all(p.requires_grad for p in model.blocks.parameters())

    def test_a_stack_grows(self, start: Start) -> None:
        model = stacked()
        run = start(
            model, shuffled(), loss=cross_entropy, depth={"kind": "stacking", "shares": [1, 1]}, budget="6 steps"
        )
        run.wait()
        assert [record["layers_run"] for record in run.telemetry().scalars] == [2.0] * 3 + [4.0] * 3

    def test_layers_that_do_not_exist_yet_give_tuples_as_the_others_do(self, start: Start) -> None:
        run = start(PairedStack(), shuffled(), loss=cross_entropy, depth="multi_stage", budget="4 steps")
        run.wait()
        assert run.telemetry().scalars[-1]["layers_run"] == 4.0

    @pytest.mark.parametrize("depth", ["stacking", "progressive_drop"])
    def test_a_model_that_reads_all_of_its_tuples_is_refused_before_anything_starts(
        self, depth: str, start: Start
    ) -> None:
        why = rf"depth: '{depth}' cannot be carried out on .* of PairedStack: without some .* TypeError.*depth 'full'"
        with pytest.raises(RecipeError, match=why):
            start(PairedStack(costs=True), shuffled(), loss=cross_entropy, depth=depth, budget="4 steps")
        start(PairedStack(costs=True), shuffled(), loss=cross_entropy, budget="2 steps").wait()

    def test_layers_computed_again_give_the_same_losses(self, start: Start) -> None:
        losses = []
        for recompute in ("off", "layers"):
            run = start(
                bert(), sentences(), optimizer=ADAMW, depth="progressive_drop", budget="6 steps",
                execution={"recompute": recompute},
            )  # fmt: skip
            run.wait()
            losses.append(run.telemetry().series("loss")[1])
        assert losses[0] == losses[1]

    @pytest.mark.extended
    @pytest.mark.usefixtures("graphs_alone")
    def test_compiled_layers_compute_the_same(self, start: Start) -> None:
        losses = []
        for compiled in (False, True):
            run = start(
                stacked(layers=2, dropout=0.0), list(DataLoader(points(), batch_size=16, drop_last=True)),
                loss=cross_entropy, optimizer=ADAMW, budget="6 steps", execution={"compile": compiled},
            )  # fmt: skip
            run.wait()
            losses.append(run.telemetry().series("loss")[1])
        assert losses[0] == pytest.approx(losses[1], abs=1e-4)


def _progress(run: AcceleratedRun, step: int) -> Any:
    from workbench.choices.progress import Progress

    return Progress(step, 0, 0.0, run.recipe.budget)


class TestTheRunFolder:
    def test_it_is_a_run_like_any_other(self, start: Start) -> None:
        run = start(stacked(), shuffled(), shuffled(), loss=cross_entropy, budget=EIGHT)
        result = run.wait()
        assert run.status == "finished"
        assert result["heldout_loss"] == run.view().evaluations["heldout"][-1]["loss"]
        assert len(run.view().evaluations["heldout"]) == 2
        assert run.view().references.title == "held-out loss"
        assert run.view().references.baselines is None
        (begun,) = [event for event in run.telemetry().events if event["kind"] == "start"]
        assert "no baselines" in begun["text"]
        assert run.report().stat().st_size > 100_000
        recipe = json.loads(run.folder.recipe.read_text())
        assert recipe["architecture"] == {
            "kind": "own_model", "model": "Stacked", "parameters": 4627, "frozen": 0, "layers": 4,
            "stack": "blocks",
        }  # fmt: skip
        assert recipe["data"] == {
            "kind": "own_loader", "loader": "DataLoader", "dataset": "TensorDataset", "batches": 4, "batch_size": 16,
            "counted": "rows",
        }  # fmt: skip
        assert run.recipe.to_dict() == recipe

    def test_a_language_model_has_the_floor_of_word_frequencies(self, start: Start) -> None:
        from transformers import BertForMaskedLM

        def hide(rows: list[torch.Tensor]) -> dict[str, torch.Tensor]:
            ids = torch.stack(rows)
            hidden = torch.rand(ids.shape) < 0.3  # drawn by the collator, as transformers' own does
            return {"input_ids": ids.where(~hidden, 4), "labels": ids.where(hidden, -100)}

        # Half of all words are the 5.
        ids = torch.randint(5, 64, (64, 12), generator=torch.Generator().manual_seed(3))
        ids = list(ids.where(ids % 2 == 0, 5))
        model = BertForMaskedLM(bert().config)
        run = start(
            model, DataLoader(ids[:48], 8, collate_fn=hide), DataLoader(ids[48:], 8, collate_fn=hide),
            budget={"amount": 2, "unit": "steps", "evaluations": 1}, optimizer={"kind": "adamw", "lr": 1e-12},
        )  # fmt: skip
        run.wait()
        baseline = run.view().references.baselines
        expected = -0.5 * math.log(0.5) - 0.5 * math.log(0.5 / 29)
        assert baseline is not None
        assert baseline.unigram == pytest.approx(expected, rel=0.1)
        assert run.result["learned"] == "nothing yet"
        first = run.result["heldout_loss"]
        again = start(
            model, run._given.loader, run._given.heldout, budget="1 steps", optimizer={"kind": "adamw", "lr": 1e-12}
        )
        assert again.wait()["heldout_loss"] == pytest.approx(first, abs=1e-6), "the same words are hidden"

    def test_without_heldout_data(self, start: Start) -> None:
        run = start(stacked(), shuffled(), loss=cross_entropy, budget="2 steps")
        assert run.wait()["heldout_loss"] is None
        (begun,) = [event for event in run.telemetry().events if event["kind"] == "start"]
        assert "give a second loader" in begun["text"]

    def test_it_is_steered(self, start: Start) -> None:
        run = start(stacked(), shuffled(), loss=cross_entropy, budget="100000 steps")
        assert run.set("optimizer.lr", 5e-4, timeout=30).startswith("optimizer.lr")
        with pytest.raises(RunError, match="no held-out data"):
            run.evaluate(timeout=30)
        assert "pausing" in run.pause(timeout=30)
        assert run.resume(timeout=30) == "going on"
        with pytest.raises(RunError, match="in training by run"):
            start(run._given.model, shuffled(), loss=cross_entropy)
        run.stop()
        assert run.wait()["stopped_early"]
        assert len(checkpoints(run.folder.checkpoints)) >= 1

    def test_a_live_view_is_made(self, start: Start) -> None:
        run = start(stacked(), shuffled(), loss=cross_entropy, budget="3 steps")
        view = run.watch()
        run.wait()
        assert type(view).__name__ == "Monitor"
        view.close()

    def test_a_failure_is_told_and_leaves_the_model_as_it_was(self, start: Start) -> None:
        model = stacked()

        def broken(model: nn.Module, batch: Any) -> torch.Tensor:
            broken.calls += 1
            if broken.calls == 5:
                raise RuntimeError("the fifth call")
            return cross_entropy(model, batch)

        broken.calls = 0
        run = start(model, shuffled(), loss=broken, depth="progressive_drop")
        with pytest.raises(RunFailed, match=f"the fifth call.*{run.folder.log}") as failed:
            run.wait()
        assert isinstance(failed.value.__cause__, RuntimeError)
        assert failed.value.__cause__.args == ("the fifth call",)
        assert "the fifth call" in run.tail()
        assert not any("forward" in vars(module) or module._forward_pre_hooks for module in model.modules())
        assert not run._session

    def test_a_loss_that_is_not_a_number_names_no_checkpoint_that_is_not_there(self, start: Start) -> None:
        run = start(stacked(), shuffled(), loss=lambda model, batch: cross_entropy(model, batch) * math.nan)
        with pytest.raises(RunFailed, match="it left no checkpoint: begin it anew") as failed:
            run.wait()
        assert "last checkpoint" not in str(failed.value)
        assert isinstance(failed.value.__cause__, ArithmeticError)


PROGRAM = """
import sys, time, torch
import workbench as wb
model = torch.nn.Linear(4, 1)
batches = [torch.ones(2, 4)] * 10
def loss(model, batch):
    time.sleep(0.01)
    return model(batch).square().mean()
run = wb.accelerate(model, batches, loss=loss, budget="100000 steps", runs_dir=sys.argv[1])
while run.state.step < 3:
    time.sleep(0.05)
if sys.argv[2] == "wait":
    print("waiting", flush=True)
    run.wait()
"""


@pytest.mark.parametrize("how", ["wait", pytest.param("end", marks=pytest.mark.extended)])
def test_a_program_that_ends_leaves_a_checkpoint(how: str, tmp_path: Path) -> None:
    """Interrupted (Ctrl-C) while it waits, or at its end without waiting: stopped, saved, and told so."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path), how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    if how == "wait":
        assert process.stdout is not None
        assert process.stdout.readline() == "waiting\n"
        time.sleep(0.3)  # into the wait itself
        process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    (path,) = tmp_path.glob("2*")
    run = wb.Run(path)
    assert run.status == "stopped", errors
    (path,) = checkpoints(run.folder.checkpoints)
    assert path.name == f"step-{run.state.step}"
    (stop,) = [event["text"] for event in run.telemetry().events if event["kind"] == "stop"]
    assert ("KeyboardInterrupt" in errors, "Ctrl-C" in stop) == ((True, True) if how == "wait" else (False, False))
    assert how == "wait" or "run.wait()" in stop
    assert how == "end" or f"ended at step {run.state.step}; `workbench.accelerate(model, loader, resume='" in out


def test_what_is_frozen_takes_no_gradients_and_states(start: Start) -> None:
    # With gradients and two moments for all of it 0.035 GiB, more than there is.
    execution = {"micro_batch_size": "auto", "memory_gib": 0.03}
    run = start(MostlyFrozen(), shuffled(), loss=cross_entropy, budget="2 steps", execution=execution)
    assert run.wait()["steps"] == 2
    assert run.recipe.architecture.frozen == 9 * 2**18 + 3
    trained = MostlyFrozen().requires_grad_(False)
    trained.large.requires_grad_(True)
    with pytest.raises(RecipeError, match=r"0\.03 GiB are less than the model takes .* 0\.035"):
        start(trained, shuffled(), loss=cross_entropy, execution=execution)


def test_a_limit_that_is_not_kept_is_told_in_a_sentence(start: Start) -> None:
    model = nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 3))
    gib = 16.1 * sum(parameter.numel() for parameter in model.parameters()) / 2**30
    run = start(model, shuffled(), loss=cross_entropy, execution={"micro_batch_size": "auto", "memory_gib": gib})
    with pytest.raises(RunFailed, match="a pass of 1 row takes"):
        run.wait()
    assert "a pass of 1 row takes" in (log := run.folder.log.read_text())
    assert "Traceback" not in log
