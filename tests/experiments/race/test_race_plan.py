"""What may race: refusals before anything is launched, equal budgets, what a race costs."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.race.conftest import Starter, written
from tests.forecasting.machine_rates import RATES
from workbench import presets
from workbench.base.errors import RecipeError
from workbench.client.run import Run
from workbench.experiments.experiment_folder import RaceFolder
from workbench.experiments.race.race import Race
from workbench.experiments.race.race_plan import ARM_NAME, Entry, RacePlan, arms_of
from workbench.experiments.race.race_words import cost_lines
from workbench.experiments.words import duration
from workbench.forecasting.forecast import forecast
from workbench.recipes.recipe import Recipe
from workbench.store.checkpoints import FORMAT, MANIFEST, file_hash
from workbench.store.folder import RunFolder, write_json
from workbench.store.labels import label

Planned = Callable[..., RacePlan]


def test_equal_reference_time_gives_a_slower_arm_fewer_steps(planned: Planned, tiny: Recipe) -> None:
    deep = tiny.with_(architecture={"layers": 6})
    plan = planned({"baseline": tiny, "deep": deep}, "2 s")
    for arm, recipe in (("baseline", tiny), ("deep", deep)):
        share = plan.shares[arm]
        ahead = forecast(recipe.with_(budget=f"{share.steps} steps"), rates=RATES)
        assert ahead.seconds == pytest.approx(2.0, rel=0.01)
        assert (share.unit, share.amount) == ("steps", share.steps)
        assert share.seconds_per_step == pytest.approx(ahead.seconds / share.steps)
        assert plan.recipe_of(Entry(arm, 0)).budget.amount == share.steps
    assert plan.shares["deep"].steps < 0.6 * plan.shares["baseline"].steps


def test_a_batch_that_grows_by_what_it_measures_is_bought_by_the_token(planned: Planned, tiny: Recipe) -> None:
    plan = planned({"baseline": tiny, "grown": tiny.with_(data={"batch_rule": "simigrad"})}, "2 s")
    begun = plan.shares["baseline"]
    for amount in (plan.shares["grown"].amount, plan.recipe_of(Entry("grown", 0)).budget.amount):
        assert amount == pytest.approx(begun.tokens, rel=0.1), "300 steps of 64 times as many rows are no equal budget"
    assert plan.shares["grown"].unit == "tokens"


def test_equal_flops_tokens_steps_and_seconds_of_each_runs_own_clock(planned: Planned, tiny: Recipe) -> None:
    arms = {"baseline": tiny, "deep": tiny.with_(architecture={"layers": 6}, data={"batch_size": 16})}
    flops = planned(arms, "1e11 flops").shares
    assert flops["deep"].flops == pytest.approx(flops["baseline"].flops, rel=0.02) == pytest.approx(1e11, rel=0.02)
    tokens = planned(arms, "5e4 tokens").shares
    assert (tokens["deep"].unit, tokens["deep"].amount) == ("tokens", 5e4)
    assert tokens["baseline"].steps == pytest.approx(2 * tokens["deep"].steps, abs=1)
    assert {share.steps for share in planned(arms, "100 steps").shares.values()} == {100}
    measured = planned(arms, "3 s", clock="measured")
    assert {recipe["budget"]["unit"] for recipe in measured.arms.values()} == {"seconds"}


def test_a_budget_that_is_not_used_is_said(planned: Planned, tiny: Recipe) -> None:
    arms = {"baseline": tiny, "mine": tiny.with_(budget="20 s", optimizer={"lr": 2e-3})}
    plan = planned(arms, None)
    (said,) = (line for line in plan.warnings if "is not used" in line)
    assert said == (
        f"the budget of 'mine', 20 seconds, is not used: each arm gets {plan.budget}, as long as 'baseline' takes for "
        "its own 200 steps; give the race a budget to change that"
    )
    assert any(said in line for line in cost_lines(plan))
    assert not any("is not used" in line for line in planned(arms, "200 steps").warnings), "it was asked for"
    assert not any("is not used" in line for line in planned(budget=None).warnings)


def test_the_race_says_how_often_and_on_what_all_are_scored(planned: Planned, tiny: Recipe) -> None:
    plan = planned({"baseline": tiny, "mine": tiny.with_(budget={"evaluation_tokens": 4096, "evaluations": 7})})
    assert {(r["budget"]["evaluations"], r["budget"]["evaluation_tokens"]) for r in plan.arms.values()} == {(2, 1024)}


def test_a_run_differs_from_its_arm_in_seed_name_and_budget_alone(planned: Planned) -> None:
    plan = planned(seeds=[7, 9])
    recipe = plan.recipe_of(Entry("baseline", 9, 2.0))
    assert (recipe.seed, recipe.name, recipe.budget.amount) == (9, "baseline 2x seed 9", 400)
    assert set(recipe.diff(Recipe(**plan.arms["baseline"]))) == {"seed", "name", "budget.amount"}


@pytest.mark.parametrize(
    ("arms", "options", "said"),
    [
        (["baseline"], {}, "at least two arms: give a dict of names and recipes"),
        (["baseline", "<b>"], {}, r"arm '<b>': a name has"),
        (["baseline", "mine"], {"seeds": 1}, "2 to 100 different ones, got 1"),
        (["baseline", "mine"], {"baseline": "yours"}, "unknown value 'yours'.*legal: baseline, mine"),
        (["baseline", "mine"], {"score": "nat"}, "did you mean 'nats'"),
        (["baseline", "mine"], {"seeds": "two"}, "seeds: 'two' is neither a number of seeds nor a list of them"),
        (["baseline", "mine"], {"seeds": True}, "neither a number"),
        (["baseline", "mine"], {"budget": 5}, "budget: 5 has no unit; write '200 steps'"),
        (["baseline", "mine"], {"reference": 2.0}, "reference: give ratios.*got 2.0"),
        (["baseline", "mine"], {"margin": "wide"}, "at least 0, got 0.05 and 'wide'"),
        (["baseline", "mine"], {"name": 5}, "name: 5 is not a text"),
        (["baseline", "mine"], {"runs_dir": 5}, "runs_dir: 5 is not a folder's path"),
        (["baseline", "mine"], {"rates": "fast"}, "rates: 'fast' is not the rates of a machine"),
        (["baseline", "mine"], {"say": True}, "say: True is not a function"),
        (["baseline", "mine"], {"clock": "wall"}, "legal: measured, reference"),
        (["baseline", "mine"], {"budget": "-30 s"}, "budget '-30 s': a budget must be more than 0"),
        (["baseline", "mine"], {"budget": "60 parsecs"}, "write '200 steps', '1.5M tokens'"),
        (["baseline", "mine"], {"budget": "5 steps"}, "too small: arm 'baseline' gets 5 steps"),
        (["baseline", "mine"], {"alpha": 0}, "between 0.0001 and 1"),
        (["baseline", "mine"], {"budget": "1e999 flops"}, "more than 0, and finite"),
    ],
)
def test_what_cannot_race_is_refused(
    planned: Planned, tiny: Recipe, root: Path, arms: list[str], options: dict[str, Any], said: str
) -> None:
    with pytest.raises(RecipeError, match=said):
        planned(dict.fromkeys(arms, tiny), **options)
    assert not root.exists()


def test_a_budget_of_fewer_labels_than_the_vocabulary_has_entries_is_refused(planned: Planned, tiny: Recipe) -> None:
    with pytest.raises(RecipeError, match=r"too small: arm 'baseline' sees 192 labelled tokens"):
        planned({"baseline": tiny.with_(data={"batch_size": 2}), "mine": tiny}, "20 steps")


def test_scores_that_do_not_compare_are_refused(planned: Planned, tiny: Recipe) -> None:
    smaller = tiny.with_(data={"tokenizer": {"vocabulary_size": 128}})
    with pytest.raises(RecipeError, match=r"different tokenizers.*bits_per_byte"):
        planned({"baseline": tiny, "mine": smaller})
    assert planned({"baseline": tiny, "mine": smaller}, score="bits_per_byte").score == "bits_per_byte"
    with pytest.raises(RecipeError, match="different text"):
        planned({"baseline": tiny, "mine": tiny.with_(data={"heldout_fraction": 0.2})}, score="bits_per_byte")
    with pytest.raises(RecipeError, match="scores of different kinds"):
        planned({"baseline": tiny, "mine": tiny.with_(objective="causal")}, score="bits_per_byte")
    # Rows, batches and masks are the arm's own business.
    planned({"baseline": tiny, "mine": tiny.with_(data={"sequence_length": 64}, objective={"mask_rate": 0.3})})


def test_all_arms_in_one_text(planned: Planned, tiny: Recipe, tmp_path: Path) -> None:
    path = tiny.save(tmp_path / "tiny.json")
    plan = planned(f"{path} mine={path}:optimizer.lr=2e-3")
    assert list(plan.arms) == ["tiny", "mine"]
    assert plan.arms["mine"]["optimizer"]["lr"] == 2e-3


def test_cost_is_that_of_all_runs(planned: Planned) -> None:
    plan = planned(seeds=6, reference=(0.5, 2.0))
    # Six seeds of two arms and of the baseline at two more budgets; 24, of them 16 at the first look.
    assert (plan.cost.runs, plan.cost.first_runs) == (24, 16)
    seconds = plan.shares["baseline"].seconds
    each = 6 * (seconds * (1 + 0.5 + 2) + plan.shares["mine"].seconds + 4 * 5.0)
    assert plan.cost.seconds == pytest.approx(each / plan.at_once)
    assert plan.cost.core_hours == pytest.approx(each / 3600)
    text = "\n".join(cost_lines(plan))
    for words in ("24 runs", "(baseline)", "200 steps = ", " s forecast (",
                  f" at a time: about {duration(plan.cost.seconds)} (from speeds measured on the machine), ",
                  "12 of the 2 arms on 6 seeds", "12 of baseline at 0.5x and 2x",
                   "With 6 seeds this race detects differences of 0.03"):  # fmt: skip
        assert words in text
    assert repr(plan).startswith("<race of baseline and mine: at most 6 seeds, 24 runs, about ")
    own = cost_lines(planned(budget="3 s", clock="measured"))
    assert any(line.startswith("  mine: about ") and "= 3 s by its own clock" in line for line in own)
    text = "\n".join(cost_lines(planned(seeds=2, reference=())))
    assert "4 runs (4 of the 2 arms on 2 seeds)," in text
    assert "With 2 seeds this race detects differences of " in text


def test_arms_that_ask_for_the_same_training_are_said(planned: Planned, tiny: Recipe) -> None:
    (warning,) = planned({"a": tiny, "b": tiny.with_(name="other", seed=5), "c": tiny.with_(seed=1)}).warnings
    assert warning.startswith("'a' and 'b' and 'c': these arms ask for the same training")


def test_arms_of_one_preset_are_named_by_what_differs() -> None:
    texts = ["fast", "fast:optimizer.lr=1e-3", "fast:depth=progressive_drop", f"fast:notes={'x' * 60}"]
    named = arms_of(texts)
    assert list(named)[:3] == ["fast", "fast optimizer.lr 1e-3", "fast depth progressive_drop"]
    assert list(named.values()) == texts
    assert all(re.fullmatch(ARM_NAME, name) for name in named)


def test_an_arm_from_a_run_is_called_as_the_run(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "20260101-000000-fast-000000-0000")
    folder.path.mkdir()
    presets.get("fast").with_(name="calmer, again").save(folder.recipe)
    assert list(arms_of(["fast", str(folder.recipe)])) == ["fast", "calmer again"]
    label(folder, name="best")
    assert list(arms_of(["fast", str(folder.recipe)])) == ["fast", "best"]


def test_too_short_a_start_from_scratch_is_said_before(planned: Planned) -> None:
    (warning, other) = planned(budget="25 steps").warnings
    assert "'baseline' may not get 0.1 nats below word frequencies: 3.8" in warning
    assert "'mine'" in other
    assert planned(budget="200 steps").warnings == ()


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    """A checkpoint without tensors."""
    path = tmp_path / "run" / "checkpoints" / "step-6"
    path.mkdir(parents=True)
    (path / "state.json").write_text("{}")
    manifest = {"format": FORMAT, "sha256": {"state.json": file_hash(path / "state.json")}}
    (path / MANIFEST).write_text(json.dumps(manifest))
    return path


def test_a_race_whose_checkpoints_were_deleted_fails_with_the_reason(planned: Planned, whole: Path) -> None:
    folder = written(planned(seeds=4, initial=dict.fromkeys(range(4), whole)))
    shutil.rmtree(whole)
    for _ in range(3):
        Race(folder).advance()
    state = folder.read_state()
    assert state["status"] == "failed"
    assert f"'{whole}' is no checkpoint to begin with (there is no such folder)" in state["message"]


def test_all_arms_begin_with_one_checkpoint_per_seed(planned: Planned, whole: Path) -> None:
    path = whole
    plan = planned(seeds=4, initial=dict.fromkeys(range(4), path))
    assert (plan.initial["3"], plan.warnings) == (str(path), ())
    assert any("weights of one checkpoint per seed" in line for line in cost_lines(plan))
    begun: list[str] = []
    starter = Starter(plan, lambda entry: 2.0)

    def start(recipe: Recipe, *, initial: str, **options: str) -> Run:
        begun.append(initial)
        return starter(recipe, **options)

    Race(written(plan)).advance(start)
    assert begun == [str(path)] * plan.at_once
    with pytest.raises(RecipeError, match="initial: seed 1 has no checkpoint to begin with"):
        planned(seeds=4, initial={0: path})
    (path / "state.json").write_text("{ }")
    with pytest.raises(RecipeError, match=r"step-6' is no checkpoint to begin with \(state.json is damaged"):
        planned(seeds=4, initial=dict.fromkeys(range(4), path))


def test_a_plan_reads_back_also_that_of_another_version(planned: Planned, tmp_path: Path) -> None:
    plan = planned()
    folder = RaceFolder(tmp_path / plan.id)
    folder.path.mkdir()
    write_json(folder.plan, plan.to_dict())
    assert RacePlan.read(folder) == plan
    write_json(folder.plan, {**plan.to_dict(), "colour": "blue", "version": "0.0.1"})
    assert RacePlan.read(folder).version == "0.0.1"
    write_json(folder.plan, {**plan.to_dict(), "schema_version": 2, "version": "9.9"})
    with pytest.raises(ValueError, match=r"newer workbench \(9\.9\).*upgrade"):
        RacePlan.read(folder)
    write_json(folder.plan, {"id": "x"})
    with pytest.raises(ValueError, match="damaged"):
        RacePlan.read(folder)


def test_ids_of_runs_follow_from_race_arm_seed_and_ratio(planned: Planned) -> None:
    plan = planned(seeds=10, reference=(0.5, 2))
    ids = [plan.run_id(entry) for entry in plan.entries(10, plan.others)]
    assert len(set(ids)) == 40
    assert ids == [plan.run_id(entry) for entry in plan.entries(10, plan.others)]
    assert all(run_id.startswith(plan.id[:15]) for run_id in ids)
