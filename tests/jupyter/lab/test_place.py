"""Where the next launch runs: what speaks against it is said at once, by this machine and by a cluster."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from workbench import presets
from workbench.jupyter.lab.lab import Lab
from workbench.jupyter.lab.place import Place, places

THREADS = {"execution.threads": 1}


def test_places_are_those_that_are_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    assert {each.partition(":")[0] for each in places()} == {"local"}
    (tmp_path / "sbatch").write_text("#!/bin/sh\n")
    (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("RAY_ADDRESS", "10.0.0.1:6379")
    assert {each.partition(":")[0] for each in places()} == {"local", "slurm", "ray"}


def test_this_machine_answers_at_once() -> None:
    changes: list[bool] = []
    place, recipe = Place(lambda: changes.append(True)), presets.get("fast").with_(**THREADS)
    assert place.hindrance(recipe) == ""
    place.text.value = "local:processes=1000"
    assert changes == [True]
    assert "processes: 1000 with 1 thread each, and this machine has" in place.hindrance(
        recipe.with_(data={"batch_size": 2000})
    )
    place.text.value = "local:proceses=2"
    assert "its knobs are kind, oversubscribe, priority, processes, wait" in place.hindrance(recipe)
    place.text.value = "slrum"
    assert "did you mean 'slurm'?" in place.hindrance(recipe)
    place.text.value = " "
    assert place.hindrance(recipe) == ""


@pytest.mark.process
def test_a_cluster_is_asked_in_the_background(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sbatch = tmp_path / "sbatch"
    sbatch.write_text("#!/bin/sh\necho 'sbatch: error: invalid partition specified: gpu' >&2\nexit 1\n")
    sbatch.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    answered: list[str] = []
    recipe = presets.get("fast")
    place = Place(lambda: answered.append(place.hindrance(recipe)))
    place.text.value = "slurm:partition=gpu"
    assert answered == ["asking slurm"]
    deadline = time.monotonic() + 20
    while len(answered) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "invalid partition specified: gpu" in answered[1]


def test_launch_waits_until_the_place_is_a_legal_one(tmp_path: Path) -> None:
    lab = Lab(presets.get("fast"), runs_dir=tmp_path, live=True)
    try:
        assert not lab.launch_button.disabled
        lab.place.text.value = "local:processes=0"
        assert lab.launch_button.disabled
        assert "processes" in lab.launch_button.tooltip
        assert "processes" in lab.composer.verdict.value
        assert "processes" in lab.place.widget.children[-1].value, "beside the field as well"
        assert not lab.race_button.disabled
        assert lab.kept["place"] == "local:processes=0"
        lab.place.text.value = "local"
        assert not lab.launch_button.disabled
        assert len(lab.place.widget.children) == 1
        assert "processes" not in lab.composer.verdict.value
        assert lab.launch_button.tooltip.startswith("train this recipe")
    finally:
        lab.close()
