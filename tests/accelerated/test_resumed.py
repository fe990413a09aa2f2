"""Runs of a user's own objects that go on: bit for bit, with the same objects only, in any program."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import workbench as wb
from tests.accelerated.models import MostlyFrozen, Start, cross_entropy, shuffled, stacked, stop_after
from workbench.base.errors import RecipeError, RunError, RunFailed
from workbench.cli.command import main
from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder

# A run asks git for the revision that it runs.
pytestmark = pytest.mark.process


def test_an_interrupted_run_repeats_bit_for_bit(start: Start) -> None:
    """A shuffling loader, dropout, dropped layers, running means, momenta: all go on where they were."""
    options: dict[str, Any] = {
        "optimizer": {"kind": "lans", "lr": 1e-2},
        "depth": "progressive_drop",
        "budget": "11 steps",
    }
    straight = stacked()
    start(straight, shuffled(), loss=cross_entropy, **options).wait()
    first, loss = stacked(), stop_after(6)
    run = loss.run = start(first, shuffled(), loss=loss, **options)
    assert run.wait()["stopped_early"]
    stopped = run.state.step
    assert 0 < stopped < 11
    again = stacked(seed=5)
    resumed = start(again, shuffled(), loss=counted_as(loss), resume=run.id)
    assert resumed.wait()["steps"] == 11
    for name, value in straight.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name
    assert not torch.equal(first.last.weight, straight.last.weight)
    # In the same program the run knows its objects.
    with pytest.raises(RunError, match="is finished"):
        run.resume()
    assert torch.equal(run.load_into(stacked(seed=7)).last.weight, straight.last.weight)
    assert torch.equal(run.load_into(first, step=stopped).last.weight, first.last.weight)


def counted_as(loss: Any) -> Callable[..., torch.Tensor]:
    """The plain loss under the name that the run began with."""

    def counted(model: nn.Module, batch: Any) -> torch.Tensor:
        return cross_entropy(model, batch)

    return counted


class TestResuming:
    def test_in_the_same_program(self, start: Start) -> None:
        loss = stop_after(2)
        run = loss.run = start(stacked(), shuffled(), loss=loss, budget="5 steps")
        run.wait()
        assert "attempt 2" in run.resume()
        assert run.wait()["steps"] == 5

    def test_other_objects_are_refused(self, start: Start) -> None:
        loss = stop_after(1)
        run = loss.run = start(stacked(), shuffled(), loss=loss, budget="5 steps")
        run.wait()
        with pytest.raises(RunError, match=r"architecture\.parameters was 4627, is"):
            start(stacked(layers=5), shuffled(), loss=loss, resume=run)
        with pytest.raises(
            RunError, match=r"\(architecture\.model was Stacked, is Linear; .*parameters was 4627, is 27"
        ):
            start(nn.Linear(8, 3), shuffled(), loss=loss, resume=run)
        with pytest.raises(RecipeError, match="goes on under the choices that it began with"):
            start(stacked(), shuffled(), loss=loss, resume=run, optimizer="lans")
        loss.calls = 10
        assert start(stacked(), shuffled(), loss=loss, resume=run.folder.path).wait()["steps"] == 5

    def test_a_model_that_another_run_trains_is_left_alone(self, start: Start) -> None:
        loss, model = stop_after(1), stacked()
        run = loss.run = start(model, shuffled(), loss=loss, budget="5 steps")
        run.wait()
        other = start(model, shuffled(), loss=cross_entropy, budget="10 minutes")
        with pytest.raises(RunError, match=f"this model is in training by run '{other.id}'"):
            run.resume()
        other.stop()

    def test_nothing_else_can_start_it(self, start: Start, capsys: pytest.CaptureFixture[str]) -> None:
        loss = stop_after(1)
        run = loss.run = start(stacked(), shuffled(), loss=loss, budget="5 steps")
        run.wait()
        plain, root = wb.Run(run.id, run.folder.path.parent), f"--runs={run.folder.path.parent}"
        for refused in (plain.resume, plain.fork):
            with pytest.raises(RunError, match=f"accelerate\\(model, loader, resume='{run.id}'\\)"):
                refused()
        with pytest.raises(RecipeError, match="is not whole: a loader, a loss, a model of its run were objects"):
            wb.launch(run.recipe, runs_dir=run.folder.path.parent)
        capsys.readouterr()
        assert main(["resume", run.id, root]) == 2
        assert "workbench.accelerate(model, loader" in capsys.readouterr().err
        told = rf"is not whole.* `workbench.Run\('{run.id}'\).load_into\(model\)` loads .* `model.save_pretrained"
        with pytest.raises(RunError, match=told):
            run.export(run.folder.path / "exported")


class TestWeights:
    def test_they_are_loaded_from_the_folder_alone(self, start: Start) -> None:
        model = stacked()
        run = start(model, shuffled(), loss=cross_entropy, budget="3 steps")
        run.wait()
        program = (
            "import torch, workbench as wb; from tests.accelerated.models import stacked\n"
            f"model = wb.Run({str(run.folder.path)!r}).load_into(stacked(seed=9))\n"
            f"torch.save(model.state_dict(), {str(run.folder.path / 'again.pt')!r})"
        )
        subprocess.run([sys.executable, "-c", program], check=True)
        again = torch.load(run.folder.path / "again.pt")
        assert again.keys() == model.state_dict().keys()
        assert all(torch.equal(value, again[name]) for name, value in model.state_dict().items())

    def test_tied_ones_are_loaded(self, start: Start) -> None:
        def tied() -> nn.Module:
            model = stacked(layers=2)
            model.blocks[1] = model.blocks[0]
            return model

        run = start(tied(), shuffled(), loss=cross_entropy, budget="2 steps")
        run.wait()
        again = wb.Run(run.folder.path).load_into(tied())
        assert torch.equal(again.blocks[1].up.weight, run._given.model.blocks[0].up.weight)

    @pytest.mark.parametrize(
        ("other", "message"),
        [
            (lambda: stacked(layers=5), r"trained a Stacked.* checkpoint has no blocks\.4\..* and 3 more; build the"),
            (lambda: stacked(layers=3), r"do not fit this Stacked: the model has no blocks\.3\."),
            (lambda: nn.Linear(8, 3), r"the model has no .*; the checkpoint has no weight, bias"),
            (lambda: resized(), r": last\.weight is \(5, 16\), was \(3, 16\), last\.bias is \(5,\), was \(3,\); build"),
            (lambda: "a model", "load_into takes a model, a torch.nn.Module, got str"),
        ],
    )  # fmt: skip
    def test_those_of_another_model_are_refused_by_name(
        self, other: Callable[[], Any], message: str, start: Start
    ) -> None:
        run = start(stacked(), shuffled(), loss=cross_entropy, budget="1 steps")
        run.wait()
        with pytest.raises(RunError, match=message):
            wb.Run(run.folder.path).load_into(other())

    def test_a_run_of_a_recipe_is_exported(self, tmp_path: Path) -> None:
        folder = RunFolder(tmp_path / "a-run")
        folder.path.mkdir()
        Recipe().save(folder.recipe)
        with pytest.raises(RunError, match=r"has its model from a recipe, .* `workbench export a-run FOLDER`"):
            wb.Run(folder).load_into(stacked())


def resized() -> nn.Module:
    model = stacked()
    model.last = nn.Linear(16, 5)
    return model


def test_a_run_of_before_frozen_weights_were_counted_goes_on(start: Start) -> None:
    loss = stop_after(2)
    run = loss.run = start(MostlyFrozen(), shuffled(), loss=loss, budget="4 steps")
    assert run.wait()["stopped_early"]
    recipe = json.loads(run.folder.recipe.read_text())
    del recipe["architecture"]["frozen"]
    run.folder.recipe.write_text(json.dumps(recipe))
    resumed = start(MostlyFrozen(), shuffled(), loss=counted_as(loss), resume=run.id)
    # Taken for the same objects; that the file is another than its checkpoint knows is this test's doing.
    with pytest.raises(RunFailed, match="was made by recipe"):
        resumed.wait()
