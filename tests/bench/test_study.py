"""The study of methods: what it compares, what it keeps and what it misses, without training."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.race.conftest import held, planned, root, tiny
from tests.experiments.sweep.conftest import FLOOR, finish
from tests.forecasting.machine_rates import RATES
from workbench.base.errors import TargetMissed, WorkbenchError
from workbench.bench import study
from workbench.bench.command import main
from workbench.bench.result import ResultsFile
from workbench.bench.study import missing, section_of, warm_starts
from workbench.bench.study_page import page
from workbench.bench.study_tracks import TRACKS, Track, arms_of
from workbench.client.run import Run
from workbench.experiments.race.race import Race
from workbench.experiments.race.race_plan import RacePlan
from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder

__all__ = ["planned", "root", "tiny"]
SECTION = {"Optimizer": {"mine": {"optimizer": {"kind": "lion"}}, "no: heads": {"architecture": {"heads": 7}}}}
"""The second cannot be built."""


@pytest.fixture
def section(
    tiny: Recipe, planned: Callable[..., RacePlan], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., dict[str, Any]]:
    """``section(loss)`` -> what a study keeps of a section whose tuned baseline ends at ``loss``; unigram is 6."""
    monkeypatch.setenv("WORKBENCH_RUNS", str(root))
    results = ResultsFile(tmp_path / "study.json", "study")
    results.put(unigram_entropy=6.0)

    def tune(track: str, recipes: dict[str, Recipe], _results: ResultsFile, _at_once: int, loss: float) -> Any:
        return {
            name: (recipe.with_(optimizer={"lr": recipe.optimizer.lr / 2}), loss) for name, recipe in recipes.items()
        }

    def begin(arms: dict[str, Recipe], budget: str, seeds: int, **options: Any) -> Race:
        begun.append(options["name"])
        return held(planned(arms, budget, seeds=seeds, reference=(0.5, 2.0)))

    begun: list[str] = []

    def compiling(key: str, recipe: Recipe, _results: ResultsFile) -> float:
        return {"causal/Optimizer/baseline": 1.0, "causal/Optimizer/mine": 3.0}[key]

    def measured(loss: float = 2.0, instead: dict[str, Any] | None = None) -> dict[str, Any]:
        track = Track(tiny, SECTION, instead={"Optimizer": instead} if instead else {})
        options: dict[str, Any] = {"seeds": 4, "at_once": 1, "tune": partial(tune, loss=loss), "rates": RATES}
        found = section_of("causal", track, "Optimizer", results, begin=begin, compiling=compiling, **options)
        return {**found, "begun": begun, "data": results.data}

    return measured


@pytest.mark.process  # git, for the revision
def test_a_section_is_tuned_then_raced_and_its_race_is_held_again(section: Callable[..., dict[str, Any]]) -> None:
    found = section()
    (verdict,) = found["verdicts"]
    assert (verdict["arm"], verdict["verdict"], verdict["speedup"]["text"]) == ("mine", "worse", "< 0.5x")
    assert found["recipes"]["mine"]["optimizer"]["kind"] == "lion"
    assert found["baseline_below_unigram"] == 4.0
    assert list(found["refused"]) == ["no heads"]
    # Every arm as long as the baseline takes, and tuned at what it is raced at.
    seconds = [found["shares"][arm]["seconds"] for arm in ("baseline", "mine")]
    assert seconds[0] == pytest.approx(seconds[1], rel=0.02)
    assert found["recipes"]["mine"]["budget"]["amount"] == found["shares"]["mine"]["steps"]
    again = section()
    assert again["race"] == found["race"]
    assert again["begun"] == ["study causal Optimizer"]
    # A file of results goes to other machines without its races.
    shutil.rmtree(Race(found["race"]).folder.path)
    assert section()["begun"] == ["study causal Optimizer"] * 2


@pytest.mark.process  # git, for the revision
@pytest.mark.parametrize(("steps", "same"), [(276, True), (282, True), (284, True), (291, False), (138, False)])
def test_what_was_tuned_at_nearly_as_many_steps_is_not_tuned_again(
    tiny: Recipe, tmp_path: Path, steps: int, same: bool
) -> None:
    results = ResultsFile(tmp_path / "study.json", "study")
    before, other = (tiny.with_(budget=f"{count} steps") for count in (282, 300))
    results.add("causal/lion/lr=0.001/warmup=0.1", before, {"budget": str(before.budget), "loss": 5.0})
    results.add("causal/lion 2/lr=0.001/warmup=0.1", other, {"budget": str(other.budget), "loss": 5.0})
    today = tiny.with_(budget=f"{steps} steps")
    assert study._as_tuned("causal/lion", today, results) == (before if same else today)
    in_seconds = tiny.with_(budget="282 s")
    assert study._as_tuned("causal/lion", in_seconds, results) == in_seconds


@pytest.mark.process  # git, for the revision
def test_the_page_says_every_verdict(section: Callable[..., dict[str, Any]]) -> None:
    found = section()
    data = {**found["data"], "sections": {"causal/Optimizer": found}}
    text = page(data, study.lacking(data))
    assert "## Optimizer, track causal" in text
    assert f"{found['measured']['date']}, revision {found['data']['revision']}." in text
    assert "| mine | worse | < 0.5x | +0.5" in text
    assert "Not in this track: no heads (" in text
    assert "* causal/Depth: progressive_drop, raptr, " in text, "what has no verdict is said to have none"


@pytest.mark.process  # git, for the revision
def test_a_section_that_compiles_says_how_long_and_counts_it(section: Callable[..., dict[str, Any]]) -> None:
    found = section(instead={"execution": {"compile": True}})
    assert all(recipe["execution"]["compile"] for recipe in found["recipes"].values())
    assert found["compilation"] == {"baseline": 1.0, "mine": 3.0}
    seconds = found["shares"]["baseline"]["seconds"]
    assert found["verdicts"][0]["speedup"]["text"] == "< 0.5x"
    bound = f"< {(0.5 * seconds + 1) / (seconds + 3):.2g}x"
    assert found["with_compilation"]["mine"]["text"] == f"{bound} ({bound} to {bound})"
    data = {**found["data"], "sections": {"causal/Optimizer": found}}
    text = page(data, study.lacking(data))
    assert "| time per step | compilation | speed-up, compilation counted |" in text
    assert f"| 3 s | {bound} (" in text
    assert "the baseline compiles for 1 s" in text
    assert section()["compilation"] == {}, "eager: nothing is compiled"


@pytest.mark.process  # git, for the revision
def test_a_process_that_finds_nothing_in_a_cache_compiles(
    tiny: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Recipe, str]] = []

    class Child:
        """Stands for a process that trains."""

        def __init__(self, module: str, setting: dict[str, Any], environment: dict[str, str]) -> None:
            self.folder = environment["TORCHINDUCTOR_CACHE_DIR"]
            assert list(Path(self.folder).iterdir()) == []

        def __enter__(self) -> Child:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def ask(self, message: dict[str, Any]) -> dict[str, Any]:
            asked.append((Recipe(**message["recipe"]), self.folder))
            return {"loss": 5.0, "steps": 20, "cpu_seconds": 1.0, "compile_seconds": 7.5}

    monkeypatch.setattr(study, "Contender", Child)
    results = ResultsFile(tmp_path / "study.json", "study")
    assert [study.compile_cold("causal/mine", tiny, results) for _ in range(2)] == [7.5, 7.5]
    ((recipe, folder),) = asked
    assert recipe.budget.amount == 20, "all stages are met before the first step: a short run is enough"
    assert not Path(folder).exists()


@pytest.mark.process  # git, for the revision
def test_a_baseline_that_has_learned_nothing_is_no_baseline(section: Callable[..., dict[str, Any]]) -> None:
    with pytest.raises(WorkbenchError, match=r"0\.50 nats below word frequencies, and needs 1\.0"):
        section(5.5)


def test_what_has_no_evidence_or_evidence_of_another_recipe_is_named(tmp_path: Path) -> None:
    empty = missing({})
    assert "causal/Depth/progressive_drop: no evidence" in empty
    build, steps = TRACKS["large_batch"]
    track = build(steps)
    assert len(arms_of(track, "Optimizer")[0]) == len(track.methods["Optimizer"])
    kept = {"steps": steps, "definitions": {**study.definitions(track, "Optimizer"), "lans": "another"}}
    left = [line for line in missing({"sections": {"large_batch/Optimizer": kept}}) if line.startswith("large_batch")]
    assert left == ["large_batch/Optimizer/lans: evidence of another recipe"]
    with pytest.raises(TargetMissed, match="methods lack evidence"):
        main(["study", "--check", "--out", str(tmp_path / "none.json")])


@pytest.mark.process  # git, for the revision
def test_what_masked_arms_begin_with_is_trained_once_per_seed(
    tiny: Recipe, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORKBENCH_RUNS", str(root))
    launched: list[int] = []

    def start(recipe: Recipe, **options: Any) -> Run:
        folder = RunFolder(root / f"20260101-00000{len(launched)}-before-000000-0000")
        launched.append(recipe.seed)
        finish(folder, FLOOR - 0.6)
        (folder.checkpoints / "step-200").mkdir(parents=True)
        return Run(folder)

    def ask(recipe: Recipe, *seeds: int) -> dict[int, str]:
        return warm_starts("masked", recipe, seeds, ResultsFile(tmp_path / "study.json", "study"), start)

    first = ask(tiny, 100, 0)
    assert [Path(path).parent.parent.parent for path in first.values()] == [root, root]
    assert ask(tiny, 100, 0, 1) == {**first, 1: ask(tiny, 1)[1]}
    assert launched == [100, 0, 1]
    ask(tiny.with_(optimizer={"lr": 2e-3}), 0)
    assert launched == [100, 0, 1, 0], "another recipe is another beginning"
    monkeypatch.setattr(study, "LEFT", 0.7)
    with pytest.raises(WorkbenchError, match=r"seed 0, is 0\.60 nats below word frequencies, and needs 0\.7"):
        ask(tiny, 0)


def test_what_is_not_there_is_refused_with_what_is(tmp_path: Path) -> None:
    for option in (["--track", "mask"], ["--only", "optimiser"]):
        with pytest.raises(WorkbenchError, match=r"causal|Optimizer"):
            main(["study", "--out", str(tmp_path / "study.json"), *option])
    assert not (tmp_path / "study.json").exists()
