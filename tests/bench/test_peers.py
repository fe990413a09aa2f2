"""The real Trainer and the real loop train a tiny model: what is asserted is bookkeeping, never speed."""

from __future__ import annotations

import itertools
import statistics
from typing import Any

import pytest

from workbench.bench import peers
from workbench.bench.peers import BEST, DEFAULT, MODERN, SAME, TUNED, UNDROPPED
from workbench.bench.rounds import SpeedRounds
from workbench.ops.attention import ATTENTION
from workbench.recipes.recipe import Recipe

CHOSEN = {
    TUNED: {"chosen": {"attention": "eager", "workers": 2}},
    UNDROPPED: {"chosen": {"attention": "sdpa", "workers": 0}},
    MODERN: {"chosen": {"attention": "eager", "workers": 0}},
}


@pytest.mark.usefixtures("turns_here")
def test_every_reading_is_kept(tiny: Recipe) -> None:
    only = {DEFAULT, SAME}
    result = peers.measure(tiny, rounds=2, steps=2, warmup=1, chosen=CHOSEN, only=only)
    assert set(result["contenders"]) == only
    for figures in result["contenders"].values():
        assert len(figures["readings"]) == 2
        assert min(figures["readings"]) > 0
        assert len(figures["losses"]) == 1 + 2 * 2
        assert figures["memory_bytes"] > 0
        assert figures["mfu"] > 0
    # The same size on both sides; what was remembered for ours, and transformers' own default for BERT.
    assert len({figures["parameters"] for figures in result["contenders"].values()}) == 1
    attention = {name: figures["attention"] for name, figures in result["contenders"].items()}
    assert attention[SAME] in ATTENTION
    assert attention[DEFAULT] == "sdpa"
    (pair,) = result["ratios"]
    assert (pair["ours"], pair["theirs"], pair["target"]) == (SAME, DEFAULT, 4.0)
    a, b = (result["contenders"][name]["readings"] for name in (SAME, DEFAULT))
    assert pair["median"] == pytest.approx(statistics.median(x / y for x, y in zip(a, b, strict=True)))
    (asked,) = result["verdicts"]
    assert (asked["value"], asked["target"]) == (pair["median"], 4.0)
    assert result["waterfall"] is None, "not all of the chain was there"


def test_all_see_one_text_size_and_seed(tiny: Recipe) -> None:
    found = peers.contenders(tiny, CHOSEN)
    recipes = {name: Recipe(**entrant.setting["recipe"]) for name, entrant in found.items()}
    for recipe in recipes.values():
        assert (recipe.data, recipe.seed) == (tiny.data, tiny.seed)
        for knob in ("layers", "width", "heads"):
            assert getattr(recipe.architecture, knob) == getattr(tiny.architecture, knob)
    assert recipes[BEST].architecture == tiny.architecture
    assert recipes[DEFAULT].architecture == recipes[SAME].architecture
    assert recipes[TUNED].architecture.dropout == 0.1
    assert recipes[UNDROPPED].architecture.dropout == recipes[MODERN].architecture.dropout == 0.0
    settings = {name: (found[name].setting["attention"], found[name].setting["workers"]) for name in (TUNED, MODERN)}
    assert settings == {TUNED: ("eager", 2), MODERN: ("eager", 0)}


def changes(before: Any, after: Any) -> set[str]:
    """Knobs in which two rungs differ; of another architecture its axis alone."""
    one, two = Recipe(**before["recipe"]), Recipe(**after["recipe"])
    paths = set(one.diff(two)) | {key for key in ("grouped",) if before.get(key) != after.get(key)}
    return {"architecture"} if one.architecture.kind != two.architecture.kind else paths


def test_each_rung_differs_from_the_one_before_in_one_thing(tiny: Recipe) -> None:
    recipe = tiny.with_(execution={"precision": "bf16", "compile": True, "attention": "auto"})
    rungs = peers.ladder(recipe)
    found = [changes(a, b) for (_, _, a), (_, _, b) in itertools.pairwise(rungs)]
    assert found == [
        {"execution.head"}, {"execution.precision"}, {"execution.compile"}, {"execution.attention"},
        {"architecture.dropout"}, {"grouped"}, {"architecture"},
    ]  # fmt: skip
    # Up to the rung of the same maths nothing is changed that the loss would show.
    assert [name for _, name, setting in rungs if setting.get("grouped")][-2] == SAME


def test_the_trial_keeps_what_it_saw_and_takes_the_fastest(tiny: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[Any]] = []

    def take_rounds(entrants: dict[str, Any], **_: Any) -> SpeedRounds:
        asked.append([entrant.setting for entrant in entrants.values()])
        rates = {name: 10.0 if name in ("sdpa", "2") else 5.0 for name in entrants}
        return SpeedRounds({}, {name: [{"tokens": each, "seconds": 1.0}] * 3 for name, each in rates.items()}, {})

    monkeypatch.setattr(peers, "take_rounds", take_rounds)
    found = peers.tuning(tiny, 1)
    # Each for itself: what is fast for a BERT may not be so for a ModernBERT.
    models = [setting["model"] for settings in asked for setting in settings]
    assert models == ["bert"] * 8 + ["modernbert"] * 4
    assert [found[name]["chosen"] for name in (TUNED, UNDROPPED, MODERN)] == [{"attention": "sdpa", "workers": 2}] * 3
    assert found[TUNED]["attention_tokens_per_second"] == {"eager": 5.0, "sdpa": 10.0}
    assert found[TUNED]["workers_tokens_per_second"] == {"0": 5.0, "2": 10.0}
    assert [setting["workers"] for setting in asked[1]] == [0, 2]
    assert all(setting["attention"] == "sdpa" for setting in asked[1])


def test_curves_are_put_beside_the_spread_of_seeds(tiny: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
    ends = {"ours": 5.0, "ours, seed 1": 5.2, "ours, seed 2": 4.9, "theirs": 5.1, "ours, exact": 4.0}

    def take_rounds(entrants: dict[str, Any], *, warmup: int, **_: Any) -> SpeedRounds:
        (name,) = entrants
        losses = [9.0] * (warmup - 2) + [ends.get(name, 4.00002)] * 2
        return SpeedRounds({name: {"warmup": {"losses": losses}}}, {name: []}, {})

    monkeypatch.setattr(peers, "take_rounds", take_rounds)
    found = peers.agreement(tiny, 4)
    assert found["exact"]["difference"] == pytest.approx(2e-5)
    assert found["band"] == {"theirs": 5.1, "ours": 5.0, "seeds": [5.2, 4.9]}
    assert found["within"] is True
    ends["theirs"] = 5.3
    assert peers.agreement(tiny, 4)["within"] is False
