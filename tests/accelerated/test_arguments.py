"""What ``wb.accelerate`` refuses, before anything starts, and says how to go on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader

from tests.accelerated.models import (
    Outside,
    Start,
    Straight,
    Two,
    Uneven,
    bert,
    cross_entropy,
    points,
    sentences,
    shuffled,
    stacked,
)
from workbench.base.errors import DataError, RecipeError, RunFailed

# A run asks git for the revision that it runs.
pytestmark = pytest.mark.process
PLD = {"depth": "progressive_drop"}


class Unprepared(nn.Module):
    """Without what torch's own ``__init__`` makes."""


class Unhashable(nn.Linear):
    """As a dataclass is by default."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__(8, 3)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (nn.Linear(8, 3), PLD, "decides layer by layer, and Linear has no list of layers .* use depth 'full'"),
        (nn.Sequential(nn.Sequential(nn.Linear(8, 3), nn.ReLU())), PLD, "name one, as in layers='0'"),
        (Uneven(8, 16, 3), PLD, r"layer 1 makes \(16, 16\) of \(16, 8\), and a layer that is left out passes"),
        (Straight(8, 8, 8), PLD, "a Linear .* nor ends in a norm; set depth.rescale to false .* use depth 'full'$"),
        (Straight(8, 8, 8, 8, 8), {"depth": "raptr"}, "a Linear .*depth.scaling to 'none'.* use depth 'full'$"),
        (Uneven(8, 8, 8), PLD, "layer 2 is not called with the output of layer 1"),
        *(
            (Outside(8, 8, 8, 8, 8), {"depth": depth}, "cannot be carried out .*: layer 2 is not")
            for depth in (
                {"kind": "progressive_drop", "rescale": False},
                {"kind": "raptr", "scaling": "none"},
                {"kind": "stacking", "shares": [1, 1], "initial": "copy"},
            )
        ),
        (Two(), PLD, "several stacks, 'encoder.blocks', 'decoder.blocks'; name one"),
        (stacked(), PLD | {"layers": "block"}, "did you mean 'blocks'"),
        (stacked(), {"layers": "first"}, "'first' is a Linear; name a torch.nn.ModuleList .* such as 'blocks'"),
        (stacked(), {"depth": "grow_width"}, "models of several widths, and yours cannot be built"),
        (stacked(), {"depth": {"kind": "stacking", "initial": "zero_output"}}, "depth.initial.*'zero_output'"),
        (stacked(), {"depth": "pld"}, "depth.kind: unknown value 'pld'"),
        (stacked(), {"optimizer": "sophia"}, "optimizer.*own_loss|objective.*sophia|sophia"),
        (stacked(), {"objective": "masked"}, "'objective'.* model, data and loss are your own"),
        (stacked(), {"optimiser": "lans"}, "did you mean 'optimizer'"),
        (stacked(), {"buget": "2 epochs"}, "did you mean 'budget'"),
        (stacked(), {"execution": {"kind": "onnxruntime"}}, "use execution 'native'"),
        (stacked(), {"execution": "memory"}, "execution.kind: 'memory' .* your program; use 'native'"),
        (stacked(), {"execution": {"head": "all"}}, "execution.head: 'all' .* your own; use 'labelled'$"),
        (stacked(), {"execution": {"compile": True, "compile_scope": "step"}}, "_scope: 'step' .*; use 'blocks'$"),
        (stacked(), {"execution": {"attention": "flex"}}, "execution.attention: 'flex' .*; use 'auto'$"),
        (stacked(), {"execution": {"recompute": "dropout"}}, "recompute: 'dropout' .*; use 'off' or 'layers'$"),
        (stacked(), {"loss": "mse"}, r"loss: 'mse' is no function of model and batch; write loss=lambda model, batch"),
        (
            stacked(), {"loss": nn.CrossEntropyLoss()},
            r"CrossEntropyLoss\(\) is no function of model and batch",
        ),
        (stacked(), {"loss": nn.functional.mse_loss}, r"mse_loss .* is no function of model and batch"),
        (stacked().requires_grad_(False), {}, "every parameter of this Stacked is frozen, so nothing would train"),
        (stacked(), {"loss": lambda model, batch: cross_entropy(model, batch).detach()}, "there are no gradients"),
        (
            stacked(), {"optimizer": torch.optim.SGD([torch.ones(1)])},
            "^optimizer: a SGD is not read, since a run makes its own; name a kind, .* legal: [^\n]*adamw[^\n]*$",
        ),
        (stacked(), {"lr": 1e-3}, r"'lr'.* a knob belongs into its choice \(optimizer=\{'lr'"),
        (stacked(), {"depth": "mslt"}, "did you mean 'multi_stage'"),
        (stacked(), {"epochs": 3}, "a duration into the budget"),
        *(
            (stacked(), {"budget": budget}, f"budget: '{budget}' is not a positive number and a unit; write '3 epochs'")
            for budget in ("-1 epochs", "0 epochs", "-5 steps", "3 rounds")
        ),
        (
            nn.Linear(8, 2**18), {"execution": {"micro_batch_size": "auto", "memory_gib": 0.001}},
            r"execution.memory_gib: 0.001 GiB are less than the model takes without any activation, 0.035 \(weights",
        ),
        (
            stacked(), {"execution": {"recompute": "budget", "memory_gib": 0.001}},
            "execution.recompute: 'budget' .* use 'off' or 'layers'$",
        ),
        (nn.Linear(8, 3), {"execution": {"recompute": "layers"}}, "name its layers with layers=..., or leave"),
        (stacked(), {"loss": None}, "loss: Stacked returns none for a list .* say how the loss is computed"),
        (stacked(), {"loss": lambda model, batch: model(batch[0])}, r"must be one number, .* shape \(16, 3\)"),
        ("a model", {}, "a torch.nn.Module with parameters is needed, got str"),
        (Unprepared.__new__(Unprepared), {}, r"this Unprepared was never set up; .* with super\(\).__init__\(\)"),
        (Unhashable(), {}, r"a Unhashable cannot be hashed, .* @dataclass\(eq=False\)"),
        (stacked(), {"layers": ["blocks"]}, "layers: the name of a module is needed, got list"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_before_anything_starts(
    model: Any, options: dict[str, Any], message: str, start: Start, tmp_path: Path
) -> None:
    with pytest.raises(RecipeError, match=message):
        start(model, shuffled(), **{"loss": cross_entropy, **options})
    assert not (tmp_path / "runs").exists()
    sound = isinstance(model, torch.nn.Module) and not isinstance(model, Unprepared | Unhashable)
    assert not sound or not any("forward" in vars(module) for module in model.modules())


@pytest.mark.parametrize(
    ("loader", "message"),
    [
        ([], "loader: .*gives no batch"),
        (iter([1]), "loader: .*can be read only once"),
        (7, "loader: a int cannot be read"),
        ("text", "loader: a str cannot be read; give a DataLoader or a list"),
        ({"input_ids": torch.ones(2, 3)}, "loader: a dict is one batch; give a DataLoader or a list of batches"),
    ],
)
def test_loaders_that_cannot_be_read(loader: Any, message: str, start: Start) -> None:
    with pytest.raises(DataError, match=message):
        start(stacked(), loader, loss=cross_entropy)


def test_heldout_data_that_are_empty(start: Start) -> None:
    with pytest.raises(DataError, match="heldout: this DataLoader gives no batch; look at the size"):
        start(stacked(), shuffled(), DataLoader([1], batch_size=2, drop_last=True), loss=cross_entropy)


HELDOUT = sentences()


@pytest.mark.parametrize(
    ("heldout", "message"),
    [
        ("text", "^heldout: a str cannot be read; give a DataLoader or a list of batches"),
        (["text"], "^heldout: loss: .* returns none for a str"),
        (HELDOUT[0], "^heldout: a dict is one batch"),
        (torch.zeros(4, 8, 12), "^heldout: loss: .* returns none for a Tensor"),
        ([{"input_ids": HELDOUT[0]["input_ids"]}], "^heldout: loss: .* returns none for a dict of input_ids .*; put"),
        (
            [{**HELDOUT[0], "input_ids": HELDOUT[0]["input_ids"] + 90}],
            r"^heldout: the loss of its first batch, a dict of input_ids \(8, 12\) of 95 to 153, .*: IndexError",
        ),
    ],
)
def test_heldout_data_are_looked_at_as_the_loader_is(heldout: Any, message: str, start: Start, tmp_path: Path) -> None:
    with pytest.raises((DataError, RecipeError), match=message):
        start(bert(), sentences(), heldout)
    assert not (tmp_path / "runs").exists()


def test_a_model_that_takes_no_labels_needs_a_loss(start: Start) -> None:
    class Plain(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x)

    with pytest.raises(RecipeError, match=r"TypeError: .*'labels'.*say how the loss is computed"):
        start(Plain(8, 3), [{"x": torch.ones(2, 8), "labels": torch.zeros(2)}])


@pytest.mark.parametrize("kind", ["plain torch", "transformers"])
def test_single_samples_are_no_batches(kind: str, start: Start) -> None:
    model, loader, options = stacked(), list(points()), {"loss": cross_entropy}  # type: ignore[var-annotated]
    if kind == "transformers":
        model, options = bert(), {}
        loader = [{name: values[0] for name, values in batch.items()} for batch in sentences()]  # type: ignore[misc]
    with pytest.raises(RecipeError, match=r"^loader: the loss of its first batch, .*: ValueError: .*give batches"):
        start(model, loader, **options)


class Once:
    """Batches that can be read a first time only, without saying so."""

    def __init__(self) -> None:
        self.batches = iter(list(shuffled())[:1])

    def __iter__(self) -> Any:
        return self.batches


def test_heldout_data_that_run_dry_are_no_loss_of_zero(start: Start) -> None:
    run = start(stacked(), shuffled(), Once(), loss=cross_entropy, budget="2 steps")
    with pytest.raises(RunFailed, match="heldout: the loader gave batches before, and gives none now"):
        run.wait()


def test_micro_batches_are_fitted_into_memory(start: Start) -> None:
    model = stacked(layers=2)
    model.mean = nn.Identity()  # which takes no single row
    run = start(
        model, list(DataLoader(points(), batch_size=16, drop_last=True)), loss=cross_entropy,
        budget="2 steps", execution={"micro_batch_size": "auto", "memory_gib": 0.001},
    )  # fmt: skip
    assert run.wait()["steps"] == 2


def test_layers_that_are_not_residual_by_themselves_can_be_frozen(start: Start) -> None:
    loss = {"loss": lambda model, batch: model(batch[0]).square().mean()}
    run = start(Outside(8, 8, 8), shuffled(), depth={"kind": "freeze", "share": 0.5}, budget="2 steps", **loss)
    assert run.wait()["steps"] == 2
