"""The forecast for many devices beside published results: the fit finds what made the steps; the file is whole."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from workbench.base.errors import WorkbenchError
from workbench.bench.scale import compared, measured, runs
from workbench.bench.table import PUBLISHED
from workbench.forecasting.scale import Cluster, step_on


def made(devices: int, batch: int, fixed: float) -> dict[str, Any]:
    """A system whose rows take 2 ms, and whose steps the forecast's own formula gives."""
    seconds = sum(step_on(devices, batch, 2e-3, fixed, 4e8, Cluster(8, 100, 10)))
    return {"group": "made", "system": f"{devices}", "round": "", "devices": devices, "per_node": 8, "batch": batch,
            "step_seconds": seconds, "inside": 100, "between": 10}  # fmt: skip


def test_both_forecasts_find_what_steps_were_made_of() -> None:
    published = {"parameters": 1e8, "payload_bytes": 4}
    found = compared(published | {"points": [made(8, 256, 0.01), made(32, 512, 0.01), made(64, 512, 0.01)]})
    assert [each["error"] for each in found] == pytest.approx([0, 0, 0], abs=1e-9)
    assert found[0]["alone_ms"] is None
    # One system cannot tell what every step takes from its rows.
    assert all(each["alone_error"] < -0.01 for each in found[1:])
    found = compared(published | {"points": [made(8, 256, 0.0), made(64, 512, 0.0)]})
    assert found[1]["alone_error"] == pytest.approx(0, abs=1e-9)


def test_a_whole_training_is_the_sum_of_its_phases() -> None:
    phases = [{"batch": 64, "steps": 10, "rows_per_second": 8}, {"batch": 32, "steps": 5, "rows_per_second": 2}]
    one = {"system": "one", "devices": 1, "per_node": 8, "inside": 1, "between": 1, "minutes": 2.0, "phases": phases}
    (found,) = runs({"parameters": 1, "payload_bytes": 4, "runs": [one]})
    assert found["forecast_minutes"] == pytest.approx((10 * 8 + 5 * 16) / 60)


def test_the_published_file_is_held_within_what_the_docs_say() -> None:
    if not PUBLISHED.is_file():
        pytest.skip("no docs/results: installed without the repository")
    found = measured(SimpleNamespace(points=PUBLISHED, overlap=0.0))
    assert found["summary"]["others"]["median"] < 0.10
    assert found["summary"]["others"]["count"] == 21
    (lans,) = (each for each in found["runs"] if each["system"] == "LANS, 1,536 x V100")
    assert lans["minutes"] == 54
    with pytest.raises(WorkbenchError, match=r"--overlap 2 is no share; use 0..1"):
        measured(SimpleNamespace(points=PUBLISHED, overlap=2))
