"""The numbers of a race's pictures as tables."""

from __future__ import annotations

import re

import numpy as np

from workbench.plots.curves import Curve
from workbench.plots.race import Arm, Gap, RacePicture, Reach
from workbench.plots.race_tables import curves_table, differences_table


def line(x: list[float], y: list[float]) -> Curve:
    return Curve(np.array(x), np.array(y))


PICTURE = RacePicture(
    "nats", "reference seconds",
    [
        Arm("baseline", [line([1], [3]), line([1], [5])], [line([2], [2]), line([2], [4])]),
        Arm("<b>mine", [line([1, 1.5], [2, 1])]),
    ],
    [Gap("<b>mine", [-0.1, -0.2], -0.15, -0.3, -0.01, "better"), Gap("none yet", [])],
    0.02, {}, 3.0, [Reach("<b>mine", 0.8, 0.7, 0.95)],
)  # fmt: skip


def cells(html: str) -> list[list[str]]:
    """Texts of the rows, the head included."""
    rows = re.findall(r"<tr.*?</tr>", html)
    return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]


def test_every_point_of_the_curves_stands_in_a_row() -> None:
    html = curves_table(PICTURE)
    assert cells(html) == [
        ["reference seconds", "baseline", "&lt;b&gt;mine"],
        ["1.0", "~4.000 (3.000 to 5.000)", "~2.000 (2.000 to 2.000)"],
        ["1.5", "-", "~1.000 (1.000 to 1.000)"],
        ["2.0", "3.000 (2.000 to 4.000)", "-"],
        ["the baseline&#x27;s final score, 3.000, after", "", "0.8 s (0.7 to 0.95)"],
    ]
    assert 'scope="row"' in html
    assert 'scope="col"' in html


def test_rows_of_two_moments_never_read_the_same() -> None:
    close = RacePicture("nats", "s", [Arm("a", [line([0.17, 12], [3, 2])]), Arm("b", [line([0.21], [2])])], [], 0.02)
    assert [row[0] for row in cells(curves_table(close))[1:]] == ["0.17", "0.21", "12.00"]


def test_differences_have_mean_interval_verdict_and_seeds() -> None:
    assert cells(differences_table(PICTURE))[1:] == [
        ["&lt;b&gt;mine", "-0.150", "-0.300 to -0.010", "better", "-0.100, -0.200"],
        ["none yet", "", "", "", ""],
    ]
