"""Tables, the page and the cell of a sweep: the same numbers, and names that are no markup."""

from __future__ import annotations

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from tests.experiments.sweep.conftest import Planned, Starter, held
from workbench.experiments.sweep.sweep import begin
from workbench.experiments.sweep.sweep_pictures import picture_of


def test_the_best_stands_first_and_is_said_to_be_flattered(planned: Planned) -> None:
    sweep = held(planned(seeds=2))
    titles, lines = sweep.seen.table()
    assert titles == ["point", "state", "optimizer.lr", "architecture.layers", "score (nats)", "seeds",
                      "seconds, forecast", "memory, forecast", "parameters", "front"]  # fmt: skip
    assert [line[0] for line in lines] == ["3", "2", "1", "0", "5", "4"]
    assert lines[0][4:6] == ["1.915 ± 0.007", "2"]
    # Of the forecast, whatever else the machine did meanwhile.
    assert float(lines[0][6]) == pytest.approx(sweep.points[3].share.seconds, abs=0.05)
    assert (lines[0][1], lines[0][9:], lines[2][9]) == ("best", ["seconds, memory, parameters"], "")
    assert all(line[7].endswith(" MiB") for line in lines), "as forecasts say it"
    for clock, title in (("reference", "seconds, forecast"), ("measured", "seconds of training")):
        seen = replace(sweep.seen, plan=replace(sweep.plan, clock=clock))
        assert seen.table()[0][6] == picture_of(seen).costs["seconds"] == title
    assert picture_of(sweep.seen).log == ["optimizer.lr"]


def test_wide_knobs_lie_on_logarithmic_axes(planned: Planned) -> None:
    space = {"optimizer.lr": "1e-4..1e-2", "architecture.layers": "1..2", "optimizer.weight_decay": "0.01..0.2 linear"}
    sweep = begin(*planned(space, sampler="random", runs=3))
    assert picture_of(sweep.seen).log == ["optimizer.lr", "optimizer.weight_decay"]


def test_a_table_before_anything_has_ended(planned: Planned) -> None:
    sweep = begin(*planned())
    _, lines = sweep.seen.table()
    assert [line[1] for line in lines] == ["waiting"] * 6
    assert "no point has ended with a score yet" in sweep.html()
    assert "<img" not in sweep.html(), "a picture of nothing"


def test_page_and_json_say_under_what_the_points_were_trained(planned: Planned) -> None:
    sweep = held(planned(seeds=2, budget="300 steps"))
    text = sweep.report().read_text()
    assert "Each run at the budget of 300 steps (300 steps each, " in text
    assert "Each point on 2 seeds: seeds 1000, 1001. Points by sampler grid." in text
    assert "amount 300" in text
    found = sweep.result
    assert (found.budget, found.sampler, list(found.seeds)) == ("300 steps", "grid", [1000, 1001])
    assert found.recipe["budget"] == {**sweep.plan.recipe["budget"], "amount": 300, "unit": "steps"}
    assert {row["budget"] for row in found.points} == {"300 steps"}


def test_shares_are_said_to_leave_something_out(planned: Planned) -> None:
    sweep = held(planned())
    lines = ["The rest: knobs together, curves within a part of a range, chance.",
             "Only 6 points: shares of fewer than 10 say little."]  # fmt: skip
    assert sweep.result.importance_caveat.splitlines() == lines
    assert all(line in sweep.report().read_text() for line in lines)
    assert all(line in sweep.shown().drawings["importance/all"].numbers() for line in lines)


def test_points_of_different_budgets_start_from_what_was_asked(planned: Planned) -> None:
    plan, points = planned({"budget.amount": [300, 400]})
    assert plan.base(points) == plan.recipe
    assert {point.share and point.share.words for point in points} == {"300 steps", "400 steps"}


def test_the_page_is_whole_and_safe(planned: Planned) -> None:
    sweep = held(planned(name="<script>alert(1)</script>"), Starter())
    text = sweep.report().read_text()
    assert "<script>alert(1)" not in text
    for name in ("pareto", "knob", "parallel", "importance"):
        assert f'data-figure="{name}"' in text
    assert "chosen on its own score" in text
    assert 'src="http' not in text
    HTMLParser().feed(text)
    assert "<script" not in sweep.html()
    assert "data:image/png;base64," in sweep.html()


def test_equal_times_are_no_picture_and_states_are_short(planned: Planned) -> None:
    """Points of one time budget lay between 4.988 and 4.998 s, and their states filled five lines each."""
    sweep = held(planned(budget="5 s"), Starter(lambda values, seed: 2.95 if values["optimizer.lr"] == 4e-3 else 2.0))
    drawn = sweep.shown().drawings
    assert next(iter(drawn)).startswith("knob/")
    assert "pareto/seconds" not in drawn
    assert "pareto/parameters" in drawn, "layers differ"
    assert not any("lower left" in str(each.figure().layout.title.text) for each in drawn.values())
    titles, lines = sweep.seen.table()
    assert (titles[1], {line[1] for line in lines}) == ("state", {"best", "done", "nothing learned"})
    # A longer run costs more, and that is what is asked first.
    longer = held(planned({"budget.amount": [200, 400]}, name="longer"))
    assert next(iter(longer.shown().drawings)) == "pareto/seconds"
