"""Outcomes for machines."""

from __future__ import annotations

import json
import math
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from workbench.errors import RunFailed, TargetMissed
from workbench.plots.results import outcome, require, verdict, write_outcome

from .synthetic import as_before


def test_finished_without_target(view):
    found = outcome(view)
    require(found)
    assert found["state"] == "finished"
    assert found["target_met"] is None
    assert found["steps"] == 200
    assert verdict(found).endswith(
        "(word frequencies 6.200, neighbours 4.100): has learned context: 2.17 nats below word frequencies"
    )
    assert (found["learned"], found["score"], found["unigram_entropy"], found["bigram_entropy"]) == (
        "context", "masked-only", 6.2, 4.1,
    )  # fmt: skip
    assert found["bits_per_byte"] == pytest.approx(4.034 / 3, abs=1e-3)


def test_an_old_run_claims_nothing(view):
    found = outcome(as_before(view))
    assert (found["learned"], found["score"], found["unigram_entropy"]) == (None, "80-10-10", None)
    assert "nothing to hold the 80/10/10 score against" in verdict(found)


@pytest.mark.parametrize(("target", "met"), [(4.5, True), (3.5, False)])
def test_target(view, tmp_path, target, met):
    found = outcome(view, target)
    assert found["target_met"] is met
    path = write_outcome(found, tmp_path / "deep" / "results.json")
    assert json.loads(path.read_text())["heldout_loss"] == pytest.approx(4.034, abs=1e-3)
    suite = ElementTree.fromstring(path.with_suffix(".xml").read_bytes())
    assert (suite.get("tests"), suite.get("errors"), suite.get("skipped")) == ("2", "0", "0")
    assert suite.get("failures") == str(int(not met))
    if met:
        require(found)
    else:
        assert "target missed: 4.034 against 3.500" in suite.find(".//failure").text
        with pytest.raises(TargetMissed, match=r"target missed: 4\.034 against 3\.500"):
            require(found)


def test_failed_run(empty, tmp_path):
    found = outcome(empty, 5.0)
    assert found["target_met"] is False
    suite = ElementTree.fromstring(write_outcome(found, tmp_path / "r.json").with_suffix(".xml").read_bytes())
    assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
    with pytest.raises(RunFailed, match="too early failed: RuntimeError"):
        require(found)


def test_names_that_are_no_xml(evil, tmp_path):
    path = write_outcome({**outcome(evil), "recipe": {}}, tmp_path / "r.json")
    ElementTree.fromstring(path.with_suffix(".xml").read_bytes())


def test_a_diverged_run_is_still_strict_json(view):
    result = {"train_loss": math.nan, "heldout_loss": math.inf}
    found = outcome(replace(view, evaluations={**view.evaluations, "result": result}), target_loss=5.0)
    assert (found["train_loss"], found["heldout_loss"], found["target_met"]) == (None, None, False)
    kept = {key: value for key, value in found.items() if key not in ("recipe", "environment")}
    json.dumps(kept, allow_nan=False)
