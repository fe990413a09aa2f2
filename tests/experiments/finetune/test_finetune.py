"""A fine-tuning from its plan to its scores; runs train in the process of the test."""

from __future__ import annotations

import csv
import os
import random
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CYCLE
from tests.tiny_runs import tiny_recipe
from workbench.base.errors import DataError, RecipeError, RunError
from workbench.client.run import Run
from workbench.experiments.experiment_folder import FinetuningFolder
from workbench.experiments.finetune import testing
from workbench.experiments.finetune.finetune import Finetuning, finetune
from workbench.experiments.open import experiment
from workbench.experiments.reproduce import cells_of
from workbench.launchers.create import create
from workbench.models.export import export
from workbench.plots.report import report_html
from workbench.recipes.recipe import Recipe
from workbench.store.evaluations import scores_by_step
from workbench.store.folder import RunFolder
from workbench.store.view import RunView
from workbench.training import examples, worker


def trained_here(recipe: Recipe, *, runs_dir: str, run_id: str, initial: Any) -> Run:
    """Stand for ``launch``: the run trains before this returns."""
    folder, lock = create(Path(runs_dir), lambda draft: initial(draft, recipe), run_id)
    os.close(lock)
    worker.main([str(folder.path)])
    return Run(folder)


@pytest.fixture
def encoder(tmp_path: Path, corpus: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "runs" / "20260101-000000-encoder-aaaaaa-0000")
    folder.path.mkdir(parents=True)
    tiny_recipe(corpus, steps=4, name="encoder").save(folder.recipe)
    assert worker.main([str(folder.path)]) == 0
    return folder


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    path, dice = tmp_path / "reviews.csv", random.Random(0)
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(("review", "stars"))
        for _ in range(200):
            words = dice.sample(CYCLE[1:], 5) + [CYCLE[0]] * dice.randrange(2)
            lines.writerow((" ".join(dice.sample(words, len(words))), 5 if CYCLE[0] in words else 1))
    return path


@pytest.fixture
def begun(encoder: RunFolder, reviews: Path, monkeypatch: pytest.MonkeyPatch) -> Finetuning:
    """Two rates, one of which learns nothing, with a twin; nobody drives it."""
    monkeypatch.setattr(Finetuning, "resume", lambda self: None)
    monkeypatch.setattr(testing, "tested", examples.tested)
    said: list[str] = []
    found = finetune(encoder.path, reviews, text="review", label="stars", rates=[1e-7, 5e-3], epochs=10,
                     untrained=True, name="stars", say=said.append)  # fmt: skip
    assert said == [
        "reviews: 144 train, 16 dev, 40 test examples; 4 runs: rates 1e-07, 0.005, each with an untrained twin"
    ]
    assert isinstance(found, Finetuning)
    return found


def test_the_best_rate_is_chosen_and_tested_once(begun: Finetuning, encoder: RunFolder) -> None:
    for _ in range(6):
        begun.advance(start=trained_here)
    result = begun.result
    assert result["status"] == "finished", result["summary"]
    assert result["chosen"] == {"trained": 5e-3, "untrained": 5e-3}
    assert result["score"] == "accuracy"
    assert result["test"]["trained"]["accuracy"] > result["baseline"]["accuracy"] + 0.2
    # Runs that were not chosen know nothing of the test.
    for row in result["dev"]:
        last = list(scores_by_step(RunFolder(encoder.path.parent / row["run"])).values())[-1]
        assert ("reviews accuracy" in last) == row["chosen"]
        assert "reviews dev accuracy" in last
    kept = scores_by_step(encoder)[4]
    assert kept["reviews accuracy"].value == result["test"]["trained"]["accuracy"]
    assert kept["reviews accuracy"].count == 40
    assert kept["reviews accuracy"].beside == {
        "untrained": result["test"]["untrained"]["accuracy"], "majority": result["baseline"]["accuracy"],
    }  # fmt: skip
    assert "reviews accuracy: trained" in str(result)
    assert "on 40 test examples, scored once; rates chosen on 16 others" in str(result)
    assert "Result: the test" in begun.report().read_text()
    assert "reviews accuracy" in report_html([RunView.read(encoder)])
    assert isinstance(experiment(begun.folder.path), Finetuning)
    export(encoder, encoder.path.parent / "exported")
    card = (encoder.path.parent / "exported" / "README.md").read_text()
    assert f"| reviews accuracy (share) | {result['test']['trained']['accuracy']:.4f} |" in card
    cells = dict(cells_of(begun))
    assert "wb.finetune(encoder, seeds=seeds, **options, runs_dir=runs_dir)" in cells["launch"]
    assert "'rates': [1e-07, 0.005]" in cells["options"]
    tests = begun.folder.tested.read_bytes()
    begun.advance(start=trained_here)
    assert begun.folder.tested.read_bytes() == tests


def test_a_fine_tuning_whose_runs_fail_says_why(begun: Finetuning) -> None:
    def broken(recipe: Recipe, **options: Any) -> Run:
        raise RecipeError("no")

    for _ in range(6):
        begun.advance(start=broken)
    assert begun.status == "failed"
    assert ": no" in begun.result["error"]
    assert not begun.folder.tested.exists()


def test_what_cannot_be_fine_tuned_is_refused_before_anything_begins(
    encoder: RunFolder, reviews: Path, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {"text": "review", "label": "stars", "say": None}
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"rates": [0.0]}, "rates: at most 12 numbers above 0"),
        ({"epochs": 0}, "epochs: 0 is no number above 0"),
        ({"label": "mark"}, "has no column 'mark'; it has: review, stars"),
        ({"step": 9}, "has no checkpoint of step 9; it has those of 4"),
        ({"changes": [("objective.poling", "mean")]}, "did you mean 'pooling'"),
    ]
    for changed, message in wrong:
        with pytest.raises((RecipeError, DataError, RunError), match=message):
            finetune(encoder.path, reviews, **{**asked, **changed})
    unseen = tmp_path / "unseen"
    unseen.mkdir()
    (unseen / "train.csv").write_text("review,stars\na,1\nb,2\n" * 20)
    alone = RunFolder(encoder.path.parent / "20260101-000000-none-aaaaaa-0000")
    alone.path.mkdir()
    (alone.path / "recipe.json").write_bytes(encoder.recipe.read_bytes())
    with pytest.raises(RunError, match="has no checkpoint to fine-tune"):
        finetune(alone.path, reviews, **asked)
    assert FinetuningFolder.ids(encoder.path.parent) == []
