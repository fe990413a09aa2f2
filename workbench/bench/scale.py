"""Hold the forecast for many devices against published results, from others of their kind and from one alone."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.base.errors import WorkbenchError
from workbench.bench.result import verdict
from workbench.bench.table import Options
from workbench.forecasting.scale import Cluster, step_on
from workbench.store.folder import read_object


def measured(options: Options) -> dict[str, Any]:
    """Forecast every published result.

    Raises:
        WorkbenchError: no file of published results, or an overlap that is no share.
    """
    if not options.points.is_file():
        raise WorkbenchError(f"there is no '{options.points}'; run this in the repository, or give --points FILE")
    if not 0 <= options.overlap <= 1:
        raise WorkbenchError(f"--overlap {options.overlap:g} is no share; use 0..1")
    published = read_object(options.points)
    found, whole = compared(published, options.overlap), runs(published, options.overlap)
    summary = {"others": _summary(found, "error"), "one": _summary([*found, *whole], "alone_error")}
    return {
        "points": found, "runs": whole, "overlap": options.overlap, "summary": summary,
        "median": summary["others"]["median"],
        "verdicts": [
            verdict(f"error from {name}, {what}", abs(summary[name][what]), "<=", target, "share")
            for name in summary for what, target in (("median", 0.10), ("worst", 0.25))
        ],
    }  # fmt: skip


def compared(published: Mapping[str, Any], overlap: float = 0.0) -> list[dict[str, Any]]:
    """Return each published point with its step and two forecasts of it.

    One is from the other points of its group, the other from the smallest of the group and the links alone (None for
    that one itself).
    """
    groups: dict[str, list[dict[str, Any]]] = {}
    for point in published["points"]:
        step = point["step_seconds"] if "step_seconds" in point else (
            point["batch"] / point["samples"] * point["minutes"] * 60)  # fmt: skip
        payload = point.get("parameters", published["parameters"]) * point.get(
            "payload_bytes", published["payload_bytes"])  # fmt: skip
        groups.setdefault(point["group"], []).append({**point, "step": step, "payload": payload})
    found = []
    for points in groups.values():
        smallest = min(points, key=lambda point: point["devices"])
        for point in points:
            measured = point["step"]
            ahead = _ahead(point, [other for other in points if other is not point], overlap)
            alone = None if point is smallest else _ahead(point, [smallest], overlap)
            shown = {name: value for name, value in point.items() if name not in ("step", "payload")}
            found.append(shown | {
                "step_ms": measured * 1e3, "forecast_ms": ahead * 1e3, "error": ahead / measured - 1,
                "alone_ms": alone and alone * 1e3, "alone_error": alone and alone / measured - 1,
            })  # fmt: skip
    return found


def runs(published: Mapping[str, Any], overlap: float = 0.0) -> list[dict[str, Any]]:
    """Return each published training with its minutes forecast from what one device does and the links alone."""
    payload, found = published["parameters"] * published["payload_bytes"], []
    for each in published.get("runs", []):
        seconds = sum(
            phase["steps"] * sum(step_on(each["devices"], phase["batch"], 1 / phase["rows_per_second"], 0.0, payload,
                                         _cluster(each, overlap)))
            for phase in each["phases"]
        )  # fmt: skip
        error = seconds / 60 / each["minutes"] - 1
        found.append({**each, "forecast_minutes": seconds / 60, "error": error, "alone_error": error})
    return found


def fitted(points: Sequence[Mapping[str, Any]], overlap: float = 0.0) -> tuple[float, float]:
    """Return seconds of a row and of what every step takes, which explain steps best, relative to each.

    Neither is below 0. One point alone gives the first, and 0 for the second.
    """
    step = np.array([point["step"] for point in points])
    rows = np.array([point["batch"] / point["devices"] for point in points])
    # What hides behind the backward pass is no part of a step; as if all of it fitted behind that.
    shown = 1 - overlap
    left = step - [shown * _cluster(point).sending(point["devices"], point["payload"]) for point in points]
    if len(points) == 1:
        return float(left[0] / rows[0]), 0.0
    (row, fixed), *_ = np.linalg.lstsq(np.stack([rows, np.ones(len(rows))], 1) / step[:, None], left / step, rcond=None)
    if fixed < 0:
        return float(np.median(left / rows)), 0.0
    return float(row), float(fixed)


def _ahead(point: Mapping[str, Any], known: Sequence[Mapping[str, Any]], overlap: float) -> float:
    """Return seconds of a point's step from those of other points."""
    row, fixed = fitted(known, overlap)
    return sum(step_on(point["devices"], point["batch"], row, fixed, point["payload"], _cluster(point, overlap)))


def _summary(found: Sequence[Mapping[str, Any]], name: str) -> dict[str, Any]:
    told = [each for each in found if each[name] is not None]
    worst = max(told, key=lambda each: abs(each[name]))
    median = statistics.median(abs(each[name]) for each in told)
    return {"median": median, "worst": worst[name], "system": worst["system"], "count": len(told)}


def _cluster(point: Mapping[str, Any], overlap: float = 0.0) -> Cluster:
    return Cluster(point["per_node"], point["inside"], point["between"], overlap=overlap)
