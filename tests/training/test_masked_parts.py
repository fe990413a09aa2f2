"""Masked models with every part of the loss: whole runs, resumed bit for bit, their quantities on record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from tests.training.conftest import LiveRun
from tests.training.test_resume import train
from workbench import launch
from workbench.base.errors import DataError
from workbench.choices.data.prepare import prepare
from workbench.recipes.recipe import Recipe
from workbench.telemetry.quantities import SCALARS
from workbench.telemetry.streams import read_telemetry


@pytest.fixture
def told(tmp_path: Path) -> Callable[..., Recipe]:
    """``told(tiny, ending)`` -> the recipe on documents of eight sentences that end so."""

    def _told(tiny: Recipe, ending: str) -> Recipe:
        words = [f"{a}{b}" for a in ("stone", "river", "cloud", "lamp") for b in ("", "s", "bridge", "light")]
        lines = [
            "".join(
                " ".join(words[(number * 7 + k * (3 + sentence)) % 16] for k in range(6)) + ending
                for sentence in range(8)
            )
            for number in range(400)
        ]
        folder = tmp_path / "text"
        folder.mkdir(exist_ok=True)
        for number, line in enumerate(lines):
            (folder / f"{number}.txt").write_text(f"{number} {line}")
        objective = {"selection": "span", "span_boundary": True, "sentence": "next", "sentence_weight": 0.5}
        return tiny.with_(data={"paths": (str(folder),)}, objective=objective)

    return _told


def test_a_run_with_all_parts_resumes_bit_for_bit(
    tiny: Recipe, told: Callable[..., Recipe], live: Callable[[Recipe], LiveRun]
) -> None:
    recipe = told(tiny, ". ")
    whole, parts = live(recipe), live(recipe)
    straight = train(whole)
    train(parts, stop_at=7)
    resumed = train(parts, resume=True)
    for name, tensor in straight.tensors["model"].items():
        assert torch.equal(tensor, resumed.tensors["model"][name]), name
    recorded = {name for record in read_telemetry(whole.folder.telemetry).scalars for name in record}
    for name in ("token_loss", "span_boundary", "sentence", "sentence_accuracy"):
        assert name in recorded
        assert name in SCALARS


def test_a_launch_refuses_text_without_second_sentences(
    tiny: Recipe, told: Callable[..., Recipe], tmp_path: Path
) -> None:
    recipe = told(tiny, " ")
    prepare(recipe.data, say=lambda line: None)
    with pytest.raises(DataError, match=r"100% of the .* have one only"):
        launch(recipe, runs_dir=tmp_path / "runs")
    assert not (tmp_path / "runs").exists() or not any((tmp_path / "runs").iterdir())
