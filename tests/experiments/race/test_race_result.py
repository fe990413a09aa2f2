"""A race for machines: JSON, JUnit, and what fails it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.experiments.race.conftest import held
from workbench.base.errors import RunFailed, TargetMissed, WorkbenchError
from workbench.experiments.race.race_plan import Entry, RacePlan
from workbench.experiments.race.race_result import RaceResult

Planned = Callable[..., RacePlan]


def of(loss: float, spread: float = 0.01) -> Callable[[Entry], float]:
    """Mine ends at so much beside a baseline at 2 nats."""
    return lambda entry: (loss if entry.arm == "mine" else 2.0) + spread * ((3 * entry.seed + len(entry.arm)) % 4)


def test_a_result_has_the_names_that_others_rely_on(planned: Planned, tmp_path: Path) -> None:
    found = held(planned()).result
    assert {"race", "arms", "verdict", "speedup", "interval", "p", "verdicts", "runs", "summary"} <= found.keys()
    assert found["interval"][0] < found["difference"] < found["interval"][1]
    assert found.p < 0.05
    assert str(found) == found.summary
    assert repr(found).startswith("<race baseline vs mine finished: mine is worse than baseline by 0.5")
    assert len(repr(found)) < 300
    assert "mine is worse" in found._repr_html_()
    with pytest.raises(AttributeError, match="a race's result has no 'loss'; it has race, name"):
        _ = found.loss
    assert found["speedup"]["text"].startswith("< 0.5x")
    assert [arm["sentence"] in found["summary"] for arm in found["verdicts"]] == [True]
    assert found["arms"]["mine"]["share"]["steps"] == 200
    assert [(each["git"], each["runs"]) for each in found["trained_on"]] == [("0123456789ab", 16)]
    path = found.write(tmp_path / "deep" / "race.json")
    assert json.loads(path.read_text()) == json.loads(json.dumps(found))


@pytest.mark.parametrize(
    ("loss", "failing"),
    [
        (of(2.5), ["worse", "undecided", "not-better"]),
        (of(2.0, 0.5), ["undecided", "not-better"]),
        (of(2.0, 0.002), ["not-better"]),
        (of(1.5), []),
        (of(2.95), ["worse", "undecided", "not-better"]),
        (lambda entry: 2.95 if (entry.arm, entry.seed) == ("mine", 1) else 2.0, ["undecided", "not-better"]),
    ],
    ids=["worse", "undecided", "equivalent", "better", "on the floor", "one seed on the floor"],
)
def test_what_fails_a_race(planned: Planned, loss: Callable[[Entry], float], failing: list[str]) -> None:
    found = held(planned(), loss).result
    for fail_on in ("never", "worse", "undecided", "not-better"):
        assert list(found.failures(fail_on)) == ["mine"] * (fail_on in failing), found["summary"]
        if fail_on in failing:
            with pytest.raises(TargetMissed, match="mine"):
                found.require(fail_on)
        else:
            found.require(fail_on)
    suite = ElementTree.fromstring(found.junit("worse"))
    assert suite.get("failures") == str(int("worse" in failing))
    assert [case.get("name") for case in suite] == ["race", "mine"]
    assert (found["verdict"] == "worse") == ("worse" in failing), "the gate says what the verdict says"
    assert not found.gate_note


def test_a_junit_file_has_the_seconds_trained_and_skips_what_was_not_compared(planned: Planned) -> None:
    # The runs of the fixture say that they took 2 seconds: 4 of each arm, and 8 of the baseline at other budgets.
    suite = ElementTree.fromstring(held(planned()).result.junit())
    assert [float(str(each.get("time"))) for each in (suite, *suite)] == [32.0, 24.0, 8.0]
    found = held(planned(name="short"), lambda entry: 2.99).result
    suite = ElementTree.fromstring(found.junit("worse"))
    assert (suite.get("skipped"), suite.get("failures")) == ("1", "0")
    assert "nothing was compared" in str(suite.findtext("testcase[@name='mine']/skipped"))
    assert found.gate_note.startswith("nothing was compared for mine: no seed of it or of baseline")
    suite = ElementTree.fromstring(found.junit("undecided"))
    assert (suite.get("skipped"), suite.get("failures")) == ("0", "1")


def test_a_race_that_did_not_end_well_fails_whatever_is_asked(planned: Planned) -> None:
    found = RaceResult(held(planned()).result, status="failed", error="the baseline failed\x1b")
    with pytest.raises(RunFailed, match="the baseline failed"):
        found.require("never")
    assert ElementTree.fromstring(found.junit()).get("errors") == "1"
    with pytest.raises(WorkbenchError, match="did you mean 'worse'"):
        found.failures("wors")
