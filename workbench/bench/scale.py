"""Hold the forecast for many devices against published results: each point forecast from the others of its kind."""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from workbench.base.errors import WorkbenchError
from workbench.bench.result import save
from workbench.forecasting.scale import Cluster, step_on
from workbench.store.folder import read_object

PUBLISHED = Path(__file__).parents[2] / "docs" / "results" / "scale-published.json"


def main(argv: list[str]) -> int:
    """``workbench bench scale``."""
    parser = argparse.ArgumentParser(prog="workbench bench scale", description=__doc__)
    parser.add_argument("--points", type=Path, default=PUBLISHED, help="published results")
    parser.add_argument("--out", type=Path, default=Path("out/bench"))
    options = parser.parse_args(argv)
    if not options.points.is_file():
        raise WorkbenchError(f"there is no '{options.points}'; run this in the repository, or give --points FILE")
    found = compared(read_object(options.points))
    table = Table("system", "MLPerf", "batch", "step, ms", "forecast, ms", "error")
    for each in found:
        error = f"{each['error']:+.0%}"
        table.add_row(each["system"], each["round"], f"{each['batch']:,}", f"{each['step_ms']:.1f}",
                      f"{each['forecast_ms']:.1f}", error)  # fmt: skip
    errors = [abs(each["error"]) for each in found]
    console = Console()
    console.print(table)
    console.print(f"median error {statistics.median(errors):.0%}, worst {max(errors):.0%}")
    console.print(f"saved {save('scale', {'points': found, 'median': statistics.median(errors)}, options.out)}")
    return 0


def compared(published: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return each published point with its step and the one forecast from the other points of its group."""
    payload = published["parameters"] * published["payload_bytes"]
    groups: dict[str, list[dict[str, Any]]] = {}
    for point in published["points"]:
        step = point["batch"] / point["samples"] * point["minutes"] * 60
        groups.setdefault(point["group"], []).append({**point, "step": step})
    found = []
    for points in groups.values():
        for point in points:
            row, fixed = fitted([other for other in points if other is not point], payload)
            ahead = sum(step_on(point["devices"], point["batch"], row, fixed, payload, _cluster(point)))
            measured = point["step"]
            shown = {name: value for name, value in point.items() if name != "step"}
            found.append(shown | {"step_ms": measured * 1e3, "forecast_ms": ahead * 1e3, "error": ahead / measured - 1})
    return found


def fitted(points: Sequence[Mapping[str, Any]], payload: float) -> tuple[float, float]:
    """Return seconds of a row and of what every step takes, which explain steps best, relative to each.

    Neither is below 0. One point alone gives the first, and 0 for the second.
    """
    step = np.array([point["step"] for point in points])
    rows = np.array([point["batch"] / point["devices"] for point in points])
    left = step - [_cluster(point).sending(point["devices"], payload) for point in points]
    if len(points) == 1:
        return float(left[0] / rows[0]), 0.0
    (row, fixed), *_ = np.linalg.lstsq(np.stack([rows, np.ones(len(rows))], 1) / step[:, None], left / step, rcond=None)
    if fixed < 0:
        return float(np.median(left / rows)), 0.0
    return float(row), float(fixed)


def _cluster(point: Mapping[str, Any]) -> Cluster:
    return Cluster(point["per_node"], point["inside"], point["between"])
