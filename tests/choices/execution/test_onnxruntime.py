"""ONNX Runtime as an engine: what it refuses, and, where it may be installed, that it trains as torch does."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.run_folders import root  # noqa: F401  (the same fixture as for runs)
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.base.errors import EngineError, RecipeError
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.environment import STEPS
from workbench.choices.execution.onnxruntime import ENVIRONMENT, OnnxRuntime
from workbench.choices.objectives.objective import Builder
from workbench.choices.progress import progress_at
from workbench.cli.command import main
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.recipes.recipe import Recipe

INSTALLED = "WORKBENCH_TEST_ENGINES"
"""A folder in which the environment is, or is to be built (1.1 GiB); without it the tests that need one are skipped."""
PATIENCE = 300.0


def engine(**changes: Any) -> Recipe:
    return Recipe(execution={"kind": "onnxruntime"}).with_(**changes)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"execution": {"precision": "bf16"}}, r"execution\.precision: 'bf16': .*fail under 16-bit autocast"),
        ({"execution": {"precision": "fp16"}}, r"execution\.precision: 'fp16': .*use 'fp32', or"),
        ({"execution": {"attention": "sdpa"}}, r"execution\.attention: 'sdpa': .*with dropout; use 'plain'"),
        ({"execution": {"device": "cuda"}}, r"execution\.device: .*CUDA 11.*use 'cpu', or use execution 'native'"),
        ({"depth": {"kind": "progressive_drop"}}, r"depth\.kind: 'progressive_drop' changes which.*use 'full'"),
        ({"architecture": {"positions": "tupe_a"}}, r"architecture\.positions: 'tupe_a': .*no gradient"),
        (
            {"architecture": {"kind": "transformers"}},
            r"architecture\.kind: 'transformers': .*use 'pre_ln' or 'post_ln'",
        ),
    ],
)
def test_what_ort_cannot_do_is_refused_with_the_reason(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(RecipeError, match=reason):
        engine(**changes)


@pytest.mark.parametrize("objective", ["masked", "causal"])
@pytest.mark.parametrize("architecture", ["pre_ln", "post_ln"])
def test_encoders_and_decoders_of_our_own_are_taken(objective: str, architecture: str) -> None:
    recipe = engine(objective=objective, architecture=architecture)
    made = recipe.engine()
    assert made.mode._replace(threads=1) == ("cpu", 1, "fp32", False)
    assert made.attention == "plain"
    assert made.described() == {"attention": "plain", "precision": "fp32", "onnxruntime": None}


def test_micro_batches_are_checked_as_everywhere() -> None:
    with pytest.raises(RecipeError, match="do not divide"):
        engine(data={"batch_size": 32}, execution={"micro_batch_size": 5})


@pytest.mark.process
def test_without_its_environment_nothing_is_launched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    way_out = "engine 'onnxruntime' is not installed; run `workbench engines install onnxruntime`"
    with pytest.raises(EngineError, match=way_out):
        OnnxRuntime().process()
    with pytest.raises(EngineError, match=way_out):
        launch(engine(), runs_dir=tmp_path / "runs")
    assert list((tmp_path / "runs").iterdir()) == []
    (problem,) = engine().problems_here()
    assert problem.path == "execution.kind"
    assert way_out in problem.message


def test_started_in_a_python_without_ort_it_says_so() -> None:
    if "onnxruntime" in os.listdir(Path(torch.__file__).parents[1]):
        pytest.skip("this Python has ONNX Runtime")
    threads = torch.get_num_threads()
    with pytest.raises(RecipeError, match=r"no ONNX Runtime training .*workbench engines install onnxruntime"):
        engine().engine().start()
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(
    ("said", "error", "text"),
    [
        ("Failed to allocate memory for requested buffer of size 8", MemoryError, "not enough memory in ONNX Runtime"),
        (
            "Exporting the operator 'aten::x' is not supported\nmore",
            RecipeError,
            "'aten::x' is not supported; use execu",
        ),
    ],
)
def test_what_ort_says_when_it_fails_is_told_in_one_line(said: str, error: type[Exception], text: str) -> None:
    recipe = engine(architecture={"layers": 1, "width": 16, "heads": 2})
    vocabulary = Vocabulary(size=64, used=64, cls=1, sep=2, mask=3, pad=0, unk=4)
    model = recipe.objective.build(Builder(recipe.architecture, vocabulary, 8))
    rows = torch.full((2, 8), 9)
    batch = Batch(rows, torch.arange(8).expand(2, 8), torch.zeros_like(rows), torch.arange(2))
    failing = recipe.engine()

    def graph(*inputs: torch.Tensor) -> None:
        raise RuntimeError(said)

    failing._graphs[model, 8] = graph
    model.backbone.taps = taps = []
    with pytest.raises(error, match=text):
        failing.forward(model, batch, LayerPlan.full(1), progress_at(recipe.budget, 0.0))
    assert model.backbone.taps is taps


@pytest.fixture(scope="module")
def ort() -> Iterator[None]:
    """The environment, ready."""
    folder = os.environ.get(INSTALLED)
    if not folder:
        pytest.skip(f"{INSTALLED} names no folder: `make test-engines` builds the environment (minutes, 1.1 GiB)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_CACHE", folder)
        began = time.monotonic()

        def say(done: int, line: str) -> None:
            if done < STEPS.index("compiling and testing") and time.monotonic() - began > PATIENCE:
                pytest.skip(f"the packages of onnxruntime were not installed within {PATIENCE:g} s: {line}")

        try:
            ENVIRONMENT.install(say)
        except EngineError as error:
            if "could not be fetched" not in str(error):
                raise
            pytest.skip(str(error))
        yield


def losses(run: Run) -> list[float]:
    return [point["loss"] for point in run.telemetry().scalars if "loss" in point]


@pytest.mark.process
@pytest.mark.parametrize("objective", ["masked", "causal"])
@pytest.mark.usefixtures("ort", "root")
def test_twenty_steps_equal_eager_torch(
    objective: str, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recipe = tiny_recipe(corpus, steps=20).with_(objective=objective, execution={"layers_every": 5})
    mode = {"kind": "onnxruntime", "threads": 1, "layers_every": 5}
    runs = [
        launch(recipe, runs_dir=tmp_path / "runs"),
        launch(recipe.with_(execution=mode), runs_dir=tmp_path / "runs"),
    ]
    native, ort = ({**run.wait(timeout=PATIENCE), "losses": losses(run), "id": run} for run in runs)
    assert ort["losses"] == pytest.approx(native["losses"], abs=1e-4)
    assert len(ort["losses"]) == 20
    assert ort["heldout_loss"] == pytest.approx(native["heldout_loss"], abs=1e-4)
    # Per layer, too: the RMS of activations is computed in ORT's graph, the rest from gradients that it left.
    for quantity in ("activation_rms", "grad_norm"):
        ours, theirs = ([point[quantity] for point in run.telemetry().layers if quantity in point] for run in runs)
        assert len(ours) == 5  # after steps 1, 6, 11, 16 and the last
        for ours_L, theirs_L in zip(ours, theirs, strict=True):
            assert theirs_L == pytest.approx(ours_L, rel=1e-3), quantity
    environment = json.loads(runs[1].folder.environment.read_text())
    assert environment["onnxruntime"] == "1.19.2"
    names = [path.name for path in runs[1].graphs]
    assert [name for name in names if "execution_model" in name], names
    assert runs[0].graphs == []
    assert main(["graphs", str(runs[1].folder.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["graphs"] == [str(path) for path in runs[1].graphs]


@pytest.mark.process
@pytest.mark.usefixtures("ort", "root")
def test_weights_go_from_native_to_ort_and_back_and_ort_is_steered(corpus: Path, tmp_path: Path) -> None:
    native = launch(tiny_recipe(corpus, steps=10), runs_dir=tmp_path / "runs")
    native.wait(timeout=PATIENCE)
    there = native.fork(execution={"kind": "onnxruntime", "threads": 1}, budget="100000 steps")
    wait_until(lambda: there.state.step >= 15, PATIENCE, "a step under ORT")
    there.set("optimizer.lr", 1e-4, timeout=60)
    there.stop(timeout=60)
    assert there.wait(timeout=PATIENCE)["state"] == "stopped"
    reached = there.state.step
    # From where the native run was: the first loss goes on, it does not begin again.
    assert losses(there)[0] < losses(native)[0]
    there.resume()
    wait_until(lambda: there.state.step >= reached + 2, PATIENCE, "a step after resuming")
    there.stop(timeout=60)
    there.wait(timeout=PATIENCE)
    back = there.fork(
        execution={"kind": "native", "threads": 1, "compile": False}, budget=f"{there.state.step + 5} steps"
    )
    assert back.wait(timeout=PATIENCE)["state"] == "finished"
