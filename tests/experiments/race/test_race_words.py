"""The page and the table of a race: the same numbers, and names that are no markup."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser

import pytest

from tests.experiments.race.conftest import held
from workbench.experiments.race.race_plan import RacePlan

Planned = Callable[..., RacePlan]


def test_the_table_has_what_each_arm_took_and_reached(planned: Planned) -> None:
    race = held(planned())
    share = race.plan.shares["mine"]
    titles, (baseline, mine) = race.seen.table()
    assert titles == ["arm", "steps", "tokens", "TFLOP", "seconds, forecast", "seconds of training",
                      "held-out (nats)", "seeds", "steps to the baseline's final score",
                      "time to the baseline's final score, forecast"]  # fmt: skip
    assert baseline[0] == "baseline"
    assert (mine[0], mine[1], mine[7]) == ("mine", "200", "4")
    assert float(mine[3]) == pytest.approx(share.flops / 1e12, rel=0.01)
    assert float(mine[4]) == pytest.approx(share.seconds, abs=0.05)
    # The runs of the fixture say that they took 2 seconds; their losses are 2.5 and a little by seed.
    assert mine[5:7] == ["2.0", "2.507"]
    # Half a nat worse all along, it never gets there.
    assert (baseline[8], mine[8:]) == ("200", ["-", "reached by none of 4 seeds"])
    assert [line.split()[0] for line in race.table.splitlines()] == ["arm", "baseline", "mine"]


def test_the_page_is_whole_and_safe(planned: Planned) -> None:
    race = held(planned(name="<script>alert(1)</script>"))
    text = race.report().read_text()
    assert "<script>alert(1)" not in text
    for words in ('data-figure="curves"', 'data-figure="differences"', "mine is worse", "optimizer.lr", "0.002"):
        assert words in text
    assert 'src="http' not in text
    HTMLParser().feed(text)


def test_a_mean_is_explained_only_where_there_is_one(planned: Planned) -> None:
    assert "Diamond: their mean with its interval" in held(planned()).report().read_text()
    text = held(planned(name="short"), lambda entry: 2.99).report().read_text()
    assert "Diamond: their mean" not in text
    assert "with its interval" not in text
    assert "nothing was compared" in text
