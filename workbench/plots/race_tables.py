"""The numbers behind the pictures of a race, for whoever cannot see them: one table per picture."""

from __future__ import annotations

from workbench.base.text import UNKNOWN, distinct, plain
from workbench.plots.race import RacePicture, band, ends_band
from workbench.plots.tables import table


def curves_table(picture: RacePicture) -> str:
    """Return mean loss of each arm with its best and worst seed by x, and when it reaches the baseline's final score.

    ``~``: on a part of the held-out tokens.
    """
    # Arms are scored at moments of their own: most rows are of one arm.
    found: dict[float, list[str]] = {}
    for place, arm in enumerate(picture.arms):
        for mark, points in (("~", band(arm.lines)), ("", ends_band(arm))):
            for x, mean, low, high in zip(*points, strict=True):
                cells = found.setdefault(float(x), [UNKNOWN] * len(picture.arms))
                cells[place] = f"{mark}{mean:.3f} ({low:.3f} to {high:.3f})"
    rows = list(zip(distinct(sorted(found)), (found[x] for x in sorted(found)), strict=True))
    if picture.target is not None:
        reaches = {reach.name: f"{reach.seconds:.3g} s ({reach.low:.3g} to {reach.high:.3g})"
                   for reach in picture.reaches}  # fmt: skip
        known = [reaches.get(arm.name, "" if arm.lines else "no run yet") for arm in picture.arms]
        rows.append((f"the baseline's final score, {picture.target:.3f}, after", known))
    return table([plain(arm.name) for arm in picture.arms], rows, corner=picture.x_label)


def differences_table(picture: RacePicture) -> str:
    """Return differences of each arm to the baseline: mean, interval, verdict, and one by one."""
    rows = [
        (
            plain(gap.name),
            [
                "" if gap.mean is None else f"{gap.mean:+.3f}",
                "" if gap.low is None or gap.high is None else f"{gap.low:+.3f} to {gap.high:+.3f}",
                gap.text,
                ", ".join(f"{point:+.3f}" for point in gap.points),
            ],
        )
        for gap in picture.gaps
    ]
    unit = picture.unit
    return table([f"mean ({unit})", "interval", "verdict", "by seed"], rows, corner="arm")
