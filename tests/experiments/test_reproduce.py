"""Notebooks that repeat what there is: they ask for the same training, and papermill runs them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import papermill
import pytest

import workbench
from tests.experiments.race.conftest import held as raced
from tests.experiments.sweep.conftest import finish
from tests.experiments.sweep.conftest import held as ended
from tests.forecasting.machine_rates import RATES
from tests.test_notebooks import inner_imports
from tests.tiny_runs import tiny_recipe
from workbench import presets
from workbench.base.errors import TargetMissed
from workbench.cli.command import main
from workbench.client.run import Run
from workbench.experiments.experiment_folder import RaceFolder
from workbench.experiments.race.race_plan import plan_race as enter_race
from workbench.experiments.sweep.sweep import begin
from workbench.experiments.sweep.sweep_plan import plan_sweep as enter_sweep
from workbench.experiments.sweep.sweep_result import SweepResult
from workbench.experiments.tune.tune import begin as begin_tuning
from workbench.experiments.tune.tuning_plan import plan_tuning as enter_tuning
from workbench.recipes.recipe import Recipe
from workbench.store.find import run_ids
from workbench.store.folder import RunFolder, write_json
from workbench.telemetry.streams import TelemetryWriter


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "runs"


@pytest.fixture
def notebook(root: Path, tmp_path: Path) -> Callable[..., Path]:
    """``notebook(ID)`` -> the file that the command writes."""

    def write(name: str) -> Path:
        path = tmp_path / "again" / "book.ipynb"
        assert main(["notebook", name, "--out", str(path), "--runs", str(root)]) == 0
        book = nbformat.read(path, as_version=4)
        nbformat.validate(book)
        assert [line for cell in book.cells if cell.cell_type == "code" for line in inner_imports(cell.source)] == []
        return path

    return write


def composed(path: Path) -> dict[str, Any]:
    """The names that a notebook's cells define before anything is launched."""
    names: dict[str, Any] = {"wb": workbench}
    for cell in nbformat.read(path, as_version=4).cells:
        if cell.id == "launch":
            break
        if cell.cell_type == "code":
            exec(cell.source, names)
    return names


def finished(recipe: Recipe, root: Path) -> Run:
    """A run of a recipe that has ended without having trained."""
    folder = RunFolder(root / "20260101-000000-before-000000-0000")
    finish(folder, 2.0)
    recipe.save(folder.recipe)
    return Run(folder)


@pytest.mark.extended
@pytest.mark.process
def test_a_run_is_trained_again_by_papermill(
    corpus: Path, root: Path, tmp_path: Path, notebook: Callable[..., Path]
) -> None:
    before = workbench.launch(tiny_recipe(corpus, steps=60).with_(optimizer={"lr": 1e-2}), runs_dir=root, queue=False)
    loss = before.wait_blocking().heldout_loss
    path = notebook(before.id)
    known = papermill.inspect_notebook(str(path))
    assert set(known) == {"seed", "budget", "reference_loss", "tolerance", "runs_dir"}
    assert float(known["reference_loss"]["default"]) == pytest.approx(loss, abs=1e-4)

    def repeat(**parameters: Any) -> None:
        out = str(tmp_path / "out.ipynb")
        papermill.execute_notebook(str(path), out, cwd=str(tmp_path), progress_bar=False, parameters=parameters)

    repeat()
    (again,) = (Run(each, root) for each in run_ids(root) if each != before.id)
    assert (again.status, again.recipe.hash) == ("finished", before.recipe.hash)
    cells = {cell.id: cell for cell in nbformat.read(tmp_path / "out.ipynb", as_version=4).cells}
    assert "same recipe" in str(cells["compare"].outputs)
    # A regression, if a bought one.
    told = rf"the original at {loss:.3f}: worse by .*changed to 2 steps from 60 steps"
    with pytest.raises(papermill.PapermillExecutionError, match=told):
        repeat(budget="2 steps")


@pytest.mark.parametrize(
    "recipe",
    [
        presets.fast().with_(budget="1_234_567 tokens", seed=7),
        presets.pld().with_(name="a 'quoted' ```name```", budget={"amount": 0.1 + 0.2, "unit": "seconds"}),
    ],
    ids=["tokens", "seconds"],
)
def test_every_digit_of_a_recipe_is_repeated(recipe: Recipe, root: Path, notebook: Callable[..., Path]) -> None:
    names = composed(notebook(finished(recipe, root).id))
    assert names["recipe"] == recipe


def test_a_share_of_a_step_is_the_step_that_was_trained(root: Path, notebook: Callable[..., Path]) -> None:
    recipe = presets.fast().with_(budget={"amount": 10.5, "unit": "steps"})
    assert composed(notebook(finished(recipe, root).id))["recipe"] == recipe.with_(budget="11 steps")


def test_what_a_recipe_does_not_say_is_said(corpus: Path, root: Path, notebook: Callable[..., Path]) -> None:
    run = finished(tiny_recipe(corpus).with_(budget="20 s"), root)
    run.folder.initial.mkdir(parents=True)
    writer = TelemetryWriter(run.folder.telemetry)
    writer.event(1, "knob", "optimizer.lr: 0.1")
    writer.close()
    title = nbformat.read(path := notebook(run.id), as_version=4).cells[0].source
    assert "a slower or busier machine takes fewer steps" in title
    assert "the 200 steps that it took" in title
    assert "began with the weights of another" in title
    assert "Knobs of that run were changed once while it trained" in title
    write_json(run.folder.origin, {"run": "20250101-000000-parent-000000-0000", "step": 1200, "diff": {}})
    path.unlink()
    title, parameters, *_ = (cell.source for cell in nbformat.read(notebook(run.id), as_version=4).cells)
    assert "reference_loss = None  # the original continued another run" in parameters
    assert "forked from `20250101-000000-parent-000000-0000` at step 1,200" in title


def test_a_race_is_planned_again(corpus: Path, root: Path, notebook: Callable[..., Path]) -> None:
    tiny = tiny_recipe(corpus, steps=200)
    asked = {"baseline": tiny, "mine": tiny.with_(optimizer={"lr": 2e-3}), "its own": presets.fast().with_(
        data=tiny.data, objective="masked", execution=tiny.execution, architecture={"layers": 1})}  # fmt: skip
    plan = enter_race(
        asked, "3 s", [3, 5, 8, 13], baseline="mine", reference=(0.25,), margin=0.03, name="again", runs_dir=root,
        rates=RATES,
    )  # fmt: skip
    folder = RaceFolder(RaceFolder.root(root) / plan.id)
    folder.create(plan.to_dict())
    names = composed(path := notebook(plan.id))
    same = enter_race(names["arms"], names["budget"], names["seeds"], **names["options"], runs_dir=root, rates=RATES)
    fixed = ("id", "warnings")
    ours, theirs = ({key: value for key, value in each.to_dict().items() if key not in fixed} for each in (plan, same))
    assert ours == theirs
    assert set(papermill.inspect_notebook(str(path))) == {"seeds", "budget", "fail_on", "runs_dir"}
    # As a difference from the arm before it, not from nothing.
    assert "arms['mine'] = arms['baseline'].with_(" in path.read_text().replace('\\"', '"')


@pytest.mark.parametrize(("loss", "fail_on"), [(2.5, "never"), (1.5, "worse")], ids=["worse", "better"])
def test_a_race_that_repeats_is_no_failure(
    loss: float, fail_on: str, corpus: Path, root: Path, notebook: Callable[..., Path]
) -> None:
    tiny = tiny_recipe(corpus, steps=200)
    arms = {"baseline": tiny, "mine": tiny.with_(optimizer={"lr": 2e-3})}
    plan = enter_race(arms, "200 steps", [0, 1, 2, 3], runs_dir=root, rates=RATES)
    race = raced(plan, lambda entry: (loss if entry.arm == "mine" else 2.0) + 0.01 * (entry.seed % 3))
    names = composed(path := notebook(race.id))
    assert names["fail_on"] == fail_on
    race.result.require(names["fail_on"])
    title, parameters, *_ = (cell.source for cell in nbformat.read(path, as_version=4).cells)
    assert ("`mine` was worse or failed, so a repeat that ends in the same way is no failure" in title) == (
        fail_on == "never"
    )
    assert ("'worse' would fail a repeat that ends as the original did" in parameters) == (fail_on == "never")


def test_a_sweep_is_planned_again(corpus: Path, root: Path, notebook: Callable[..., Path]) -> None:
    space = {"optimizer.lr": "1e-4..1e-2", "depth.kind": ["full", "progressive_drop"]}
    options: dict[str, Any] = {"sampler": "random", "runs": 3, "seed": 4, "seeds": 2, "name": "wide",
                               "score": "bits_per_byte", "budget": "200 steps"}  # fmt: skip
    recipe = tiny_recipe(corpus, steps=200)
    plan, points = enter_sweep(recipe, space, runs_dir=root, rates=RATES, **options)
    names = composed(notebook(begin(plan, points).id))
    same, drawn = enter_sweep(
        names["recipe"], names["space"], seeds=names["seeds"], budget=names["budget"], **names["options"],
        runs_dir=root, rates=RATES,
    )  # fmt: skip
    assert {**same.to_dict(), "id": plan.id} == plan.to_dict()
    assert drawn == points
    assert names["reference_score"] is None, "of a sweep that has not ended"


def test_a_sweep_is_held_against_how_it_ended(corpus: Path, root: Path, notebook: Callable[..., Path]) -> None:
    space = {"optimizer.lr": [1e-3, 2e-3]}
    recipe = tiny_recipe(corpus, steps=200)
    sweep = ended(enter_sweep(recipe, space, budget="200 steps", runs_dir=root, rates=RATES))
    path = notebook(sweep.id)
    best, names = sweep.result.best["score"], composed(path)
    assert (names["reference_score"], names["tolerance"]) == (pytest.approx(best, abs=1e-4), 0.05)
    (judged,) = (cell.source for cell in nbformat.read(path, as_version=4).cells if cell.id == "result")

    def judge(score: float, budget: str = "200 steps") -> None:
        result = SweepResult({**sweep.result, "best": {**sweep.result.best, "score": score}, "budget": budget})
        exec(judged, {**names, "sweep": sweep, "result": result})

    judge(best + 0.04)
    with pytest.raises(TargetMissed, match=r"the best point ended at .* worse by more than the tolerance of 0\.05$"):
        judge(best + 0.06)
    with pytest.raises(TargetMissed, match="its budget was changed to 50 steps from 200 steps"):
        judge(best + 1, "50 steps")
    names["reference_score"] = None
    judge(best + 1)


def test_a_tuning_is_planned_again(corpus: Path, root: Path, notebook: Callable[..., Path]) -> None:
    space = {"optimizer.lr": "1e-4..1e-1", "architecture.layers": [2, 1]}
    options: dict[str, Any] = {"runs_dir": root, "rates": RATES}
    plan, sweep = enter_tuning(tiny_recipe(corpus, steps=200), "20 min", space, seeds=3, name="again", **options)
    begin_tuning(plan, sweep)
    names = composed(path := notebook("again"))
    same, settings = enter_tuning(names["recipe"], names["budget"], names["space"], **names["options"], **options)
    assert {**same.to_dict(), "id": plan.id} == plan.to_dict()
    assert {**settings.to_dict(), "id": plan.id} == sweep.to_dict()
    assert set(papermill.inspect_notebook(str(path))) == {"budget", "fail_on", "runs_dir"}


def test_nothing_is_replaced(corpus: Path, root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = finished(tiny_recipe(corpus), root)
    path = tmp_path / "mine.ipynb"
    path.write_text("edited")
    assert main(["notebook", run.id, "--out", str(path), "--runs", str(root)]) == 2
    assert "name another file" in capsys.readouterr().err
    assert path.read_text() == "edited"
    assert main(["notebook", "nope", "--runs", str(root)]) == 2
    assert "no run 'nope'" in capsys.readouterr().err
    assert main(["notebook", "nope", "-o", "x.ipynb"]) == 2
    assert "nor is there a race, sweep or tuning of that name" in capsys.readouterr().err
