"""Outcomes for machines."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from tests.plots.conftest import EVIL
from tests.plots.synthetic import as_before, folder_of, trained
from workbench.base.errors import RunFailed, TargetMissed, WorkbenchError
from workbench.store.result import Result
from workbench.store.view import RunView
from workbench.telemetry.streams import Telemetry


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> RunView:
    return trained(tmp_path_factory.mktemp("runs"))


def test_finished_without_target(view):
    found = Result.of(view)
    found.require()
    assert found["state"] == "finished"
    assert found["target_met"] is None
    assert found["steps"] == 200
    assert found.verdict.endswith(
        "(word frequencies 6.200, neighbours 4.100): uses context: 0.07 nats below neighbour counts"
    )
    assert (found["learned"], found["score"], found["unigram_entropy"], found["bigram_entropy"]) == (
        "context", "masked-only", 6.2, 4.1,
    )  # fmt: skip
    assert found["bits_per_byte"] == pytest.approx(4.034 / 3, abs=1e-3)


def test_an_old_run_claims_nothing(view):
    found = Result.of(as_before(view))
    assert (found["learned"], found["score"], found["unigram_entropy"]) == (None, "80-10-10", None)
    assert found.verdict.endswith(
        "held-out loss 4.034 nats; what it has learned is not known: nothing to hold the 80/10/10 score against"
    )


@pytest.mark.parametrize(("target", "met"), [(4.5, True), (3.5, False)])
def test_target(view, tmp_path, target, met):
    found = Result.of(view, target_loss=target)
    assert found["target_met"] is met
    path = found.write(tmp_path / "deep" / "results.json")
    assert json.loads(path.read_text())["heldout_loss"] == pytest.approx(4.034, abs=1e-3)
    suite = ElementTree.fromstring(path.with_suffix(".xml").read_bytes())
    assert (suite.get("tests"), suite.get("errors"), suite.get("skipped")) == ("2", "0", "0")
    assert suite.get("failures") == str(int(not met))
    if met:
        found.require()
    else:
        assert "target missed: 4.034 against 3.500" in suite.find(".//failure").text
        with pytest.raises(TargetMissed, match=r"target missed: 4\.034 against 3\.500"):
            found.require()


def test_a_repeat_is_held_against_how_the_original_ended(view):
    found = Result.of(view)
    loss = found["heldout_loss"]
    found.require(loss - 0.05)
    found.require(None, score="next-token")
    found.require(loss - 0.5, tolerance=0.6)
    with pytest.raises(TargetMissed, match=r"^synthetic ended at 4\.034 nats, the original at 3\.934: worse by more "
                                           r"than the tolerance of 0\.05$"):  # fmt: skip
        found.require(loss - 0.1)
    with pytest.raises(TargetMissed, match="scored by 'masked-only', the original by '80-10-10'"):
        found.require(loss, score="80-10-10")
    short = Result(found, recipe={**found.recipe, "budget": {"amount": 20.0, "unit": "steps"}})
    with pytest.raises(TargetMissed, match=r"its budget was changed to 20 steps from 7200 seconds$"):
        short.require(loss - 0.1, budget="7200 seconds")
    with pytest.raises(TargetMissed, match=r"the tolerance of 0\.05$"):
        short.require(loss - 0.1, budget="20 steps")
    with pytest.raises(TargetMissed, match="ended without a score"):
        Result(found, heldout_loss=None).require(loss)
    for wrong in ({"reference_loss": "2.0"}, {"reference_loss": math.nan}, {"reference_loss": 9, "tolerance": -1}):
        with pytest.raises(WorkbenchError, match=r"a number is needed|0 or more"):
            found.require(**wrong)


def test_failed_run(tmp_path):
    folder = folder_of(tmp_path, "empty", "too early", "failed", error="RuntimeError: <img src=x onerror=y>")
    found = Result.of(RunView.read(folder), folder.path, target_loss=5.0)
    assert found.path == str(folder.path)
    assert "<img" not in found._repr_html_()
    assert found["target_met"] is False
    suite = ElementTree.fromstring(found.write(tmp_path / "r.json").with_suffix(".xml").read_bytes())
    assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
    with pytest.raises(RunFailed, match="too early failed: RuntimeError"):
        found.require()


def test_names_that_are_no_xml(tmp_path):
    found = Result.of(trained(tmp_path, "evil", EVIL, steps=40))
    path = Result(found, recipe={}).write(tmp_path / "r.json")
    ElementTree.fromstring(path.with_suffix(".xml").read_bytes())


def test_a_diverged_run_is_still_strict_json(view):
    result = {"train_loss": math.nan, "heldout_loss": math.inf}
    found = Result.of(replace(view, evaluations={**view.evaluations, "result": result}), target_loss=5.0)
    assert (found["train_loss"], found["heldout_loss"], found["target_met"]) == (None, None, False)
    kept = {key: value for key, value in found.items() if key not in ("recipe", "environment")}
    json.dumps(kept, allow_nan=False)


def test_keys_are_attributes_and_it_says_itself_in_a_sentence(view):
    found = Result.of(view, target_loss=1.0)
    assert found.heldout_loss == found["heldout_loss"]
    assert str(found) == found.verdict
    assert repr(found) == f"<{found.verdict}>"
    with pytest.raises(AttributeError, match=r"no 'loss'; it has .*heldout_loss"):
        _ = found.loss
    assert "recipe" not in found.brief
    assert "target_met" in found.brief
    assert "target_met" not in found.against(None).brief


def test_a_run_that_goes_on_has_what_it_knows_so_far(view):
    going = Result.of(replace(view, status="running"), target_loss=9.0)
    assert (going.state, going.stopped_early, going.target_met) == ("running", None, True)
    with pytest.raises(RunFailed, match="running at held-out loss"):
        going.require()
    nothing = Result.of(replace(going_nowhere(view), status="queued"), target_loss=9.0)
    assert nothing.verdict == "synthetic queued without a held-out loss; target missed: none against 9.000"


def going_nowhere(view: RunView) -> RunView:
    return replace(view, evaluations={}, state={}, telemetry=Telemetry())
