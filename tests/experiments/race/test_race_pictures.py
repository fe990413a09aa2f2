"""What the pictures and the table of a race show, from its folders."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.experiments.race.conftest import FLOOR, end, held
from workbench.experiments.race.race_pictures import picture_of
from workbench.experiments.race.race_plan import Entry, RacePlan
from workbench.experiments.race.race_words import RaceSnapshot
from workbench.experiments.race.verdicts import status_of
from workbench.plots.race import band, ends_band, race_curves
from workbench.store.folder import read_object, write_json
from workbench.store.state import write_state

Planned = Callable[..., RacePlan]


def test_pictures_show_every_seed_at_the_races_budget(planned: Planned) -> None:
    plan = planned(seeds=6)
    race = held(plan)
    picture = picture_of(plan, race.look())
    assert [(arm.name, len(arm.lines)) for arm in picture.arms] == [("baseline", 4), ("mine", 4)]
    first = picture.arms[0]
    assert (len(first.lines[0]), [len(each) for each in first.ends]) == (3, [1] * 4), "the last is of all tokens"
    assert first.ends[0].x_N[0] == pytest.approx(plan.shares["baseline"].seconds)
    (gap,) = picture.gaps
    assert len(gap.points) == 4
    assert (gap.mean, gap.text) == (race.verdicts["mine"].estimate[0], "worse")  # type: ignore[index]
    assert picture.levels == {"word frequencies": FLOOR, "neighbours": 0.5}


def test_a_race_in_bits_per_byte_is_drawn_in_them(planned: Planned) -> None:
    plan = planned(score="bits_per_byte")
    race = held(plan)
    picture = picture_of(plan, race.look())
    first = picture.arms[0]
    assert [each.y_N[0] for each in first.ends] == pytest.approx(race.look().scores(plan, "baseline", plan.seeds))
    assert picture.unit in str(race_curves(picture).layout.yaxis.title.text)
    assert first.lines[0].y_N[-1] == pytest.approx((2.0 + 100 / 150) / 3)
    assert picture.levels == {}, "word frequencies are of one tokenizer, in nats"


def test_the_seconds_to_the_baselines_final_score_are_in_picture_table_and_result(planned: Planned) -> None:
    plan = planned()
    race = held(plan, lambda entry: 2.0 if entry.arm == "mine" else 2.5)
    took = race.verdicts["mine"].to_target
    assert took is not None
    # Its curve goes from 2.667 at step 150 to 2.0 at step 200.
    steps = 150 + 50 * (2 / 3 - 0.5) / (2 / 3)
    assert took.seconds == pytest.approx(steps * plan.shares["mine"].seconds_per_step)
    assert took.baseline == pytest.approx(200 * plan.shares["baseline"].seconds_per_step)
    picture = picture_of(plan, race.look())
    assert picture.target == pytest.approx(2.5)
    assert [(reach.name, reach.seconds) for reach in picture.reaches] == [("mine", took.seconds)]
    assert took.text in race.seen.table_html()
    assert race.result["to_target"]["seconds"] == took.seconds
    assert race.result["verdicts"][0]["to_target"]["text"] == took.text


def test_a_race_that_has_hardly_begun(planned: Planned) -> None:
    plan = planned()
    assert picture_of(plan, status_of(plan)).gaps[0].mean is None
    end(plan, Entry("mine", 0), 2.0)
    assert [len(arm.lines) for arm in picture_of(plan, status_of(plan)).arms] == [0, 1]
    assert "undecided (too early)" in RaceSnapshot(plan, status_of(plan), "racing").table_html()


def test_a_curve_never_gets_shorter_when_another_seed_begins(planned: Planned) -> None:
    plan = planned()

    def curve() -> tuple[int, float]:
        arm = picture_of(plan, status_of(plan)).arms[0]
        x_P = np.concatenate([band(arm.lines)[0], ends_band(arm)[0]])
        return len(arm.lines), round(float(x_P[-1]) / plan.shares["baseline"].seconds_per_step)

    def going(seed: int, points: int) -> None:
        folder = end(plan, Entry("baseline", seed), 2.0)
        evaluations = read_object(folder.evaluations)
        write_json(folder.evaluations, {**evaluations, "heldout": evaluations["heldout"][:points], "result": None})
        write_state(folder, status="queued", host="another machine")

    going(0, 3)
    assert curve() == (1, 150)
    going(1, 1)
    assert curve() == (1, 150), "the seed that has got furthest, alone"
    end(plan, Entry("baseline", 0), 2.0)
    assert curve() == (1, 200)
    end(plan, Entry("baseline", 1), 2.0)
    going(2, 2)
    assert curve() == (2, 200)


def test_a_run_that_diverged_has_no_score_of_all_tokens(planned: Planned) -> None:
    plan = planned()
    evaluations = read_object((folder := end(plan, Entry("baseline", 0), 2.0)).evaluations)
    evaluations["heldout"][-1]["loss"] = evaluations["result"]["heldout_loss"] = None
    write_json(folder.evaluations, evaluations)
    baseline = picture_of(plan, status_of(plan)).arms[0]
    assert ([len(line) for line in baseline.lines], len(baseline.ends)) == ([3], 0)
