"""The form of a race: what it costs is said before it can begin, and what begins is what was said."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.experiments.race.conftest import root, tiny, written
from tests.forecasting.machine_rates import RATES
from tests.jupyter.messages import hear, say
from tests.tiny_runs import wait_until
from workbench import presets
from workbench.experiments.race.race import Race, race
from workbench.jupyter.compose.sources import recipe_of
from workbench.jupyter.lab import race_form
from workbench.jupyter.lab.lab import Lab
from workbench.jupyter.lab.race_form import RaceForm
from workbench.recipes.recipe import Recipe
from workbench.store.folder import RunFolder, write_json
from workbench.store.labels import label

__all__ = ["root", "tiny"]


class Page:
    """A page: asks a form, and hears its answers."""

    def __init__(self, form: RaceForm, patch: pytest.MonkeyPatch) -> None:
        self.form, self.heard, self.ask = form, hear(form, patch), 0

    def price(self, **asked: Any) -> dict[str, Any]:
        self.ask += 1
        say(self.form, {"price": self.ask, "seeds": 4, "budget": "200 steps", "name": "", **asked})
        wait_until(lambda: any(each.get("priced") == self.ask for each in self.heard), what="the cost")
        found: dict[str, Any] = self.heard[-1]
        return found


@pytest.fixture(autouse=True)
def known_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rates of a machine that never was, and no driver."""
    monkeypatch.setattr(race_form, "race", functools.partial(race, rates=RATES))
    monkeypatch.setattr(race_form, "begin", lambda plan: Race(written(plan)))


@pytest.fixture
def begun() -> list[Race]:
    return []


@pytest.fixture
def form(root: Path, begun: list[Race]) -> Iterator[RaceForm]:
    made = RaceForm(root, begun.append)
    yield made
    made.close()


def test_what_was_said_is_what_begins(
    form: RaceForm, begun: list[Race], tiny: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, mine = Page(form, monkeypatch), tiny.with_(optimizer={"lr": 2e-3}, name="faster")
    form.offer(mine, tiny, "preset tiny")
    assert page.heard[-1]["open"]["name"] == f"faster against {tiny.name}"
    assert form.own == "preset tiny, where this began"
    assert form.presets == presets.names()
    say(form, {"start": 1})
    assert begun == [], "nothing has a cost yet"
    told = page.price()
    assert told["lines"][0].startswith(f"16 runs (8 of the 2 arms on 4 seeds; 8 of {tiny.name} at 0.5x and 2x")
    rate = tiny.to_dict()["optimizer"]["lr"]
    assert told["lines"][1] == f"faster differs in optimizer.lr {rate} → 0.002"
    say(form, {"start": page.ask - 1})
    assert begun == [], "that was asked before something else was"
    say(form, {"start": page.ask})
    assert page.heard[-1] == {"begun": True}
    (race,) = begun
    plan = race.plan
    assert (plan.name, plan.seeds, plan.baseline) == (f"faster against {tiny.name}", (0, 1, 2, 3), tiny.name)
    rates = {arm: recipe["optimizer"]["lr"] for arm, recipe in plan.arms.items()}
    assert rates == {tiny.name: tiny.optimizer.lr, "faster": 2e-3}
    say(form, {"start": page.ask})
    assert len(begun) == 1, "a second press is no second race"
    fast = presets.get("fast")
    form.offer(fast.with_(optimizer={"lr": 2e-3}), fast, "preset fast")
    assert "fast" not in form.presets, "it stands first, as where this began"
    # Both are called alike: the knobs tell them apart.
    form.offer(tiny.with_(depth="progressive_drop", optimizer={"lr": 2e-3}), tiny, "preset tiny")
    assert page.heard[-1]["open"]["name"] == f"depth=progressive_drop, lr=0.002 against {tiny.name}"


def test_arms_are_called_what_their_recipes_are_called(
    form: RaceForm, begun: list[Race], tiny: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert race_form._arms("quickstart", "quickstart") == ("quickstart", "mine")
    assert race_form._arms("steered", "baseline") == ("baseline", "steered")
    assert race_form._arms("mine", "mine") == ("baseline", "mine")
    assert race_form._arms("lr=0.1, <b>", "mine") == ("baseline", "mine")
    # The preset of that name, raced against another recipe.
    page = Page(form, monkeypatch)
    form.offer(tiny.with_(name="baseline", optimizer={"lr": 2e-3}), tiny, "preset tiny")
    lines = page.price()["lines"]
    assert any(line.startswith(f"  {tiny.name}: ") and line.endswith("(baseline)") for line in lines)
    say(form, {"start": page.ask})
    assert (begun[0].plan.baseline, list(begun[0].plan.arms)) == (tiny.name, [tiny.name, "mine"])


def test_a_renamed_run_races_by_its_present_name(
    form: RaceForm, begun: list[Race], root: Path, tiny: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(root / "20260101-000000-mini-000000-0000")
    folder.path.mkdir(parents=True)
    write_json(folder.recipe, tiny.with_(name="mini").to_dict())
    label(folder, name="tiny one")
    page, source = Page(form, monkeypatch), f"run:{folder.id}"
    assert recipe_of(source, root).name == "tiny one"
    form.offer(tiny.with_(optimizer={"lr": 2e-3}, name="racer"), tiny, "preset tiny")
    assert page.heard[-1]["open"]["name"] == f"racer against {tiny.name}"
    say(form, {"pick": source})
    assert page.price()["name"] == "racer against tiny one", "the page suggests what the choice asks for"
    say(form, {"start": page.ask})
    assert (begun[0].plan.name, list(begun[0].plan.arms)) == ("racer against tiny one", ["tiny one", "racer"])


def test_the_choice_the_rate_and_its_schedule_are_named_before_other_knobs(tiny: Recipe) -> None:
    base = tiny.with_(optimizer={"kind": "adamw", "lr": 0.004, "beta2": 0.95, "schedule": {"warmup": 0.1}})
    lamb = {"kind": "lamb", "lr": 0.00675, "beta2": 0.99, "eps": 1e-7, "weight_decay": 0.3, "schedule": {"warmup": 0.2}}
    composed = tiny.with_(optimizer=lamb)
    named = list(race_form._changed(composed, base))
    assert named[:3] == ["optimizer.kind", "optimizer.lr", "optimizer.schedule.warmup"]
    assert len(named) > 3
    (said,) = race_form._difference(composed, base)
    assert said == (
        f"mine differs in {len(named)} knobs: optimizer.kind adamw → lamb, optimizer.lr 0.004 → 0.00675, "
        f"optimizer.schedule.warmup 0.1 → 0.2 and {len(named) - 3} more"
    )
    name = race_form._race_name(composed, base, base.name)
    assert name == f"optimizer=lamb, lr=0.00675, warmup=0.2 against {base.name}"


def test_what_cannot_be_raced_says_why_and_the_next_try_is_free(
    form: RaceForm, begun: list[Race], tiny: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Page(form, monkeypatch)
    form.offer(tiny, tiny, "preset tiny")
    assert "2 fortnights" in page.price(budget="2 fortnights")["error"]
    say(form, {"start": page.ask})
    assert begun == []
    say(form, {"pick": "run:20990101-000000-gone-000000-0000"})
    assert "no run" in page.price()["error"]
    say(form, {"pick": None})
    lines = page.price(name=" twice ")["lines"]
    assert any("noise" in line for line in lines), "arms that ask for the same training are said to"
    say(form, {"start": page.ask})
    assert begun[0].plan.name == "twice"


def test_other_tokenizers_compare_in_bits_per_byte_where_that_is_asked(
    form: RaceForm, begun: list[Race], tiny: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Page(form, monkeypatch)
    form.offer(tiny.with_(data={"tokenizer": {"vocabulary_size": 128}}, name="larger"), tiny, "preset tiny")
    assert "or compare bits per byte" in page.price(score="nats")["error"]
    assert "error" not in page.price(score="bits_per_byte")
    say(form, {"start": page.ask})
    assert begun[0].plan.score == "bits_per_byte"


def test_what_is_composed_on_another_text_races_on_that_text(
    form: RaceForm, begun: list[Race], tiny: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = Page(form, monkeypatch)
    began = tiny.with_(name="began", data={"kind": "embedded", "batch_size": 4})
    form.offer(tiny.with_(data={"heldout_fraction": 0.1}), began, "preset began")
    assert f"both read the text of {tiny.name}, and began keeps its rows and tokenizer" in page.price()["lines"]
    say(form, {"start": page.ask})
    data = begun[0].plan.arms["began"]["data"]
    assert (data["kind"], data["paths"], data["heldout_fraction"]) == ("files", list(tiny.data.paths), 0.1)
    assert data["batch_size"] == 4


def test_the_lab_opens_it_for_what_is_composed_and_shows_what_has_begun(
    root: Path, tiny: Recipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = Lab(tiny, runs_dir=root)
    try:
        page = Page(lab.race_form, monkeypatch)
        lab.composer.axes["optimizer"].part.knobs["lr"].input.source.value = "-1"
        assert lab.race_button.disabled
        say(lab.frame, {"do": "race"})
        assert page.heard == []
        lab.composer.axes["optimizer"].part.knobs["lr"].input.source.value = "0.004"
        say(lab.frame, {"do": "race"})
        assert page.heard[-1]["open"]["recipe"] == tiny.name
        page.price()
        monkeypatch.setattr("workbench.jupyter.lab.experiments.ExperimentPanel", Panel)
        say(lab.race_form, {"start": page.ask})
        assert lab.table.experiment.startswith("race:lr-0.004-against-")
        panel: Any = lab.experiments.panel
        assert panel.experiment.plan.arms["mine"]["optimizer"]["lr"] == 0.004
    finally:
        lab.close()


class Panel(race_form.SourcePicker):
    """Stands for the panel, which would start a driver."""

    def __init__(self, experiment: Any, on: Any) -> None:
        super().__init__("", "", list)
        self.experiment = experiment
