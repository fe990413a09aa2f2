"""The line beside Launch: of a fork, the forecast is of what it has left to train."""

from __future__ import annotations

from workbench import presets
from workbench.jupyter.compose.composition import Composition
from workbench.jupyter.compose.verdict import Verdict


def test_a_fork_is_judged_by_the_forecast_of_what_it_has_left() -> None:
    verdict, composition = Verdict(), Composition(presets.get("fast"), "fast")
    verdict.show(composition, [], 0, "")
    verdict.await_forecast("rest")
    assert "Ready. Forecast follows." in verdict.value
    verdict.judge("rest", "")
    assert ">ready<" in verdict.value
    verdict.judge("rest", "does not fit")
    assert (verdict.doubt, verdict.doubted) == ("does not fit", True)
    verdict.show(composition, [], 0, "")
    assert (verdict.doubt, verdict.doubted) == ("", False), "nobody knows yet of another"
