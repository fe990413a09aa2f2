"""Scores of predictions against torchmetrics'."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from workbench.choices.tasks.scores import accuracy, best_of_answers, exact, f1, matthews, overlap, spearman

metrics = pytest.importorskip("torchmetrics.functional")


@pytest.mark.parametrize("classes", [2, 5])
def test_classes(classes: int) -> None:
    random = np.random.default_rng(classes)
    true, said = random.integers(0, classes, 200), random.integers(0, classes, 200)
    said = np.where(random.random(200) < 0.5, true, said)
    a, b = torch.from_numpy(said), torch.from_numpy(true)
    kind = {"task": "multiclass", "num_classes": classes}
    assert accuracy(said, true) == pytest.approx(float(metrics.accuracy(a, b, **kind, average="micro")))
    theirs = metrics.f1_score(a, b, task="binary") if classes == 2 else metrics.f1_score(a, b, **kind, average="macro")
    assert f1(said, true) == pytest.approx(float(theirs))
    assert matthews(said, true) == pytest.approx(float(metrics.matthews_corrcoef(a, b, **kind)))
    assert matthews(np.zeros(200, int), true) == 0.0


def test_numbers() -> None:
    random = np.random.default_rng(0)
    true = random.integers(0, 6, 300).astype(np.float32)  # with ties
    said = (true + random.normal(size=300)).astype(np.float32)
    theirs = metrics.spearman_corrcoef(torch.from_numpy(said), torch.from_numpy(true))
    assert spearman(said, true) == pytest.approx(float(theirs), abs=1e-5)
    assert spearman(np.ones(300), true) == 0.0


def test_answers() -> None:
    true = [["the Denver Broncos", "Broncos", "Denver"], ["in 1973"], ["Saint Bernadette Soubirous"], ["a"]]
    said = ["Denver Broncos.", "1973", "Bernadette", "the"]
    asked = [{"prediction_text": text, "id": str(n)} for n, text in enumerate(said)]
    right = [{"answers": {"answer_start": [0] * len(each), "text": each}, "id": str(n)} for n, each in enumerate(true)]
    theirs = metrics.text.squad(asked, right)
    assert 100 * best_of_answers(exact, said[:3], true[:3]) == pytest.approx(
        float(metrics.text.squad(asked[:3], right[:3])["exact_match"])
    )
    assert 100 * best_of_answers(overlap, said[:3], true[:3]) == pytest.approx(
        float(metrics.text.squad(asked[:3], right[:3])["f1"])
    )
    assert 100 * best_of_answers(exact, said, true) == pytest.approx(float(theirs["exact_match"]))
