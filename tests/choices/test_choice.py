"""The registry, what a choice refuses, and choices that other packages bring along."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from workbench.choices.choice import Choice, knob, one_of, registry
from workbench.choices.optimizers import AdamW, OptimizerChoice
from workbench.choices.progress import Budget, Progress
from workbench.choices.schedules import Linear

PLUGIN = '''
"""An optimizer from another package."""
from typing import Literal
import torch
from workbench.choices.choice import knob
from workbench.choices.optimizers import OptimizerChoice

class Sgd(OptimizerChoice):
    """Plain stochastic gradient descent with momentum."""
    kind: Literal["sgd"] = "sgd"
    momentum: float = knob(0.9, "decay of the running sum", ge=0, lt=1)

    def build(self, groups, device):
        return torch.optim.SGD(groups, lr=self.lr, momentum=self.momentum)
'''


class Stacked(Choice):
    """Holds a choice of another axis, for nesting."""

    axis: ClassVar[str] = "for_tests"
    inner: one_of(OptimizerChoice) = knob("adamw", "nested choice")  # type: ignore[valid-type]


def test_registry_lists_kinds_in_order() -> None:
    kinds = list(registry("optimizer"))
    assert kinds == sorted(kinds)
    assert {"adamw", "lans"} <= set(kinds)


def test_unknown_axis_names_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"axis: unknown value 'optimiser'; did you mean 'optimizer'"):
        registry("optimiser")


def test_two_definitions_of_one_kind_are_refused() -> None:
    fields = {"__module__": "elsewhere", "__annotations__": {"kind": Literal["adamw"]}, "kind": "adamw"}
    with pytest.raises(
        TypeError, match=r"optimizer\.kind 'adamw' is already defined by workbench\.choices\.optimizers"
    ):
        type("Impostor", (OptimizerChoice,), fields)
    assert registry("optimizer")["adamw"] is AdamW


@pytest.mark.parametrize("given", ["adamw", {"kind": "adamw"}, AdamW()])
def test_a_choice_reads_from_kind_mapping_or_object(given: object) -> None:
    assert Stacked(inner=given).inner == AdamW()


def test_a_choice_of_another_axis_is_refused() -> None:
    with pytest.raises(ValueError, match="a choice of axis 'schedule' stands where 'optimizer' is expected"):
        Stacked(inner=Linear())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("adam", r"unknown value 'adam'; did you mean 'adamw'\? legal: .*adamw, .*lans, "),
        (
            {"kind": "adamw", "momentum": 1},
            "not a knob of 'adamw' but of 'muon', chosen by optimizer=muon; 'adamw' has average, beta1",
        ),
        ({"lr": 0.1}, r"missing; a mapping must name its choice: one of .*adamw, .*lans, "),
        ({"kind": "adamw", "lr": 0}, "greater than 0"),
        ({"kind": "adamw", "lr": float("nan")}, "finite"),
        (7, "valid dictionary or instance"),
    ],
)
def test_what_is_refused_and_how(given: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Stacked(inner=given)


def test_scheduled_values_are_named_by_path() -> None:
    half = Progress(50, 0, 0.0, Budget(amount=100))
    choice = Stacked(inner=AdamW(weight_decay=Linear(start=0.2, end=0.0)))
    assert choice.scheduled_values(half) == {"inner.weight_decay": pytest.approx(0.1)}
    assert AdamW().scheduled_values(half) == {"weight_decay": 0.01}


def test_summary_is_the_docstrings_first_line() -> None:
    assert Stacked.summary() == "Holds a choice of another axis, for nesting."


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A folder as pip leaves it: a module, and a distribution with an entry point."""
    (tmp_path / "their_optimizers.py").write_text(PLUGIN)
    info = tmp_path / "their_optimizers-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: their-optimizers\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[workbench.choices]\ntheirs = their_optimizers\n")
    return tmp_path


def run_python(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)


@pytest.mark.process
def test_another_package_brings_a_choice(plugin: Path) -> None:
    done = run_python(
        "import torch\n"
        "from workbench.recipes.recipe import Recipe\n"
        "recipe = Recipe(optimizer={'kind': 'sgd', 'lr': 0.5})\n"
        "assert Recipe.from_json(recipe.to_json()) == recipe\n"
        "weight = torch.nn.Parameter(torch.ones(1)); weight.grad = torch.ones(1)\n"
        "recipe.optimizer.build([{'params': [weight]}], torch.device('cpu')).step()\n"
        "print(recipe.optimizer.kind, weight.item())\n",
        plugin,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["sgd", "0.5"]


@pytest.mark.process
def test_a_broken_plugin_is_named(plugin: Path) -> None:
    (plugin / "their_optimizers.py").write_text("raise RuntimeError('half installed')\n")
    done = run_python("from workbench.recipes.recipe import Recipe\nRecipe()\n", plugin)
    assert done.returncode == 1
    assert "entry point 'theirs' of package 'their-optimizers'" in done.stderr
    assert "half installed" in done.stderr


@pytest.mark.parametrize("axis", ["data", "objective", "architecture", "depth", "optimizer", "execution", "schedule"])
def test_a_kind_that_lacks_what_its_axis_provides_is_refused_where_it_is_defined(axis: str) -> None:
    base = next(each for each in next(iter(registry(axis).values())).__mro__ if "provides" in vars(each))
    lacking = ".*".join(rf"{name}\(\)" for name in base.provides)
    with pytest.raises(TypeError, match=rf"{axis}\.kind 'bare', tests\.choices\.test_choice\..*Bare, lacks {lacking}"):
        type("Bare", (base,), {"kind": "bare", "__annotations__": {"kind": Literal["bare"]}, "__module__": __name__})
    assert "bare" not in registry(axis)


def test_summaries_are_plain_text() -> None:
    for axis in ("data", "objective", "architecture", "depth", "optimizer", "execution", "schedule", "tokenizer"):
        for choice in registry(axis).values():
            assert choice.summary()
            assert "`" not in choice.summary(), choice
