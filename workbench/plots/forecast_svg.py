"""Small pictures of a forecast as SVG text: memory by part, knobs along the budget, layers along the budget.

They take their colours of text and paper from the page around them, so that one text serves both themes, the report,
and a saved notebook without scripts. Everything in them is a number or escaped.
"""

from __future__ import annotations

import html
import itertools
from collections.abc import Mapping, Sequence

from workbench.telemetry.quantities import WORK_PARTS

MEMORY_COLOURS = {
    "weights": "#0072B2",
    "gradients": "#56B4E9",
    "optimizer": "#009E73",
    "activations": "#E69F00",
    "logits": "#CC79A7",
}
"""By part; a part that has no colour of its own here is grey."""
_OTHER = "#8A9099"
_WIDTH = 100.0


def memory_bar(memory: Mapping[str, float], label: str) -> str:
    """Return the parts one after the other, their widths in proportion; ``label`` says the same in words."""
    whole = sum(memory.values())
    if whole <= 0:
        return ""
    bars, at = [], 0.0
    for part, size in memory.items():
        width = _WIDTH * size / whole
        title = f"<title>{html.escape(part)}</title>"
        bars.append(f'<rect x="{at:.2f}" y="0" width="{width:.2f}" height="1" fill="{colour_of(part)}">{title}</rect>')
        at += width
    return _svg("wb-memory-bar", f"0 0 {_WIDTH:g} 1", label, "".join(bars))


def colour_of(part: str) -> str:
    """Return the colour of a part of memory."""
    return MEMORY_COLOURS.get(part, _OTHER)


def gauge(share: float, label: str) -> str:
    """Draw how full something is, from 0 to 1; what is beyond 1 is drawn as full, and is for words to tell."""
    width = _WIDTH * min(1.0, max(0.0, share))
    body = (
        f'<rect class="wb-room" width="{_WIDTH:g}" height="1"/><rect class="wb-full" width="{width:.2f}" height="1"/>'
    )
    return _svg("wb-gauge", f"0 0 {_WIDTH:g} 1", label, body)


def sparkline(places: Sequence[float], values: Sequence[float], label: str) -> str:
    """Return one knob along the budget, from 0 at the bottom (or its lowest value, below 0) to its highest at the top.

    Args:
        places: shares of the budget, rising from 0 to 1.
        values: of the knob there.
    """
    low, high = min(0.0, *values), max(0.0, *values)
    span = high - low or 1.0
    points = " ".join(
        f"{_WIDTH * place:.1f},{30 - 28 * (value - low) / span:.2f}"
        for place, value in zip(places, values, strict=True)
    )
    first, last = (_WIDTH * place for place in (places[0], places[-1]))
    body = (
        f'<polygon class="wb-under" points="{first:.1f},31 {points} {last:.1f},31"/>'
        f'<polyline class="wb-line" points="{points}" vector-effect="non-scaling-stroke"/>'
    )
    return _svg("wb-spark", f"0 0 {_WIDTH:g} 31", label, body)


def layer_map(forward: Sequence[Sequence[float]], backward: Sequence[Sequence[float]], label: str) -> str:
    """Return layers, the first at the bottom, along the budget: how tall its ink is says how often a layer is at work.

    Args:
        forward, backward: by place along the budget, shares (0..1) in which each layer computes, and trains.
    """
    places, layers = len(forward), max(map(len, forward), default=0)
    if not places or not layers:
        return ""
    rows = []
    for layer in range(layers):
        floor = layers - layer
        for shares, part in zip((forward, backward), WORK_PARTS, strict=True):
            path = _steps([each[layer] if layer < len(each) else 0.0 for each in shares], floor)
            rows.append(f'<path d="{path}" fill="{part.colour}"/>')
        rows.append(f'<line class="wb-floor" x1="0" x2="{places}" y1="{floor}" y2="{floor}"/>')
    return _svg("wb-layer-map", f"0 0 {places} {layers}", label, "".join(rows))


def _steps(shares: Sequence[float], floor: float) -> str:
    """Return an outline above ``floor``: full height is nine tenths of a row, the rest is the gap to the next one."""
    path, at = [f"M0 {floor:g}"], 0
    for share, same in itertools.groupby(shares):
        at += len(list(same))
        path.append(f"V{floor - 0.9 * share:.3g}H{at}")
    return "".join([*path, f"V{floor:g}Z"])


def _svg(name: str, box: str, label: str, body: str) -> str:
    # Stretched to whatever room there is; lines keep their width.
    return (
        f'<svg class="{name}" viewBox="{box}" preserveAspectRatio="none" role="img" aria-label="{html.escape(label)}">'
        f"{body}</svg>"
    )
