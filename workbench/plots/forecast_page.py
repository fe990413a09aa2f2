"""A forecast as HTML: headline numbers, memory, schedules and layers as pictures; and forecast beside measured.

Everything that came from a recipe, a file or an error is escaped. The style is in ``forecast.css`` beside this file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.base.text import count, duration_words
from workbench.plots.forecast_compared import Compared
from workbench.plots.forecast_facts import (
    MEASURED_SPEED,
    assumed,
    at_work,
    before_start,
    bytes_words,
    cost_of,
    large,
    misfit,
    moving,
    share_words,
)
from workbench.plots.forecast_svg import colour_of, gauge, layer_map, memory_bar, sparkline
from workbench.plots.tables import escape
from workbench.telemetry.quantities import SCALARS, WORK_PARTS, scalar

STYLE = (Path(__file__).parent / "forecast.css").read_text(encoding="utf-8")
"""Looks of both functions' HTML, in either theme; for pages that show it."""
MOST_SCHEDULES = 8


def line_html(
    found: Mapping[str, Any], price_per_hour: float | None = None, sharing: int = 0, brief: bool = False
) -> str:
    """Return the headline's numbers in a sentence, for a place that has no room for more; or what is wrong.

    Args:
        sharing: runs that train on the machine now, which the numbers know nothing of.
        brief: the numbers alone, above those that were measured, which say what a forecast assumes.
    """
    low, high = (duration_words(found[name]) for name in ("seconds_low", "seconds_high"))
    device = bytes_words(found["device_memory_bytes"])
    training = duration_words(found["seconds"])
    band = f" ({low} to {high})" if low != high and not brief else ""
    before, names = before_start(found)
    time = f"<strong>{training}</strong>{band}"
    if names:
        end, called = duration_words(found["seconds"] + before), " and ".join(names)
        time = f'<strong title="with {called}">{end}</strong> to the end'
        time += "" if brief else f" with {called}, {training}{band} of training"
    parts = [time, f"<strong>{count(found['tokens_per_second'])}</strong> tokens/s"]
    # "to the end" takes its place in a small box; the details have it.
    if not (brief and names):
        parts.append(
            f"<strong>{bytes_words(found['memory_bytes'])}</strong>" + ("" if brief else f" of {device} of memory")
        )
    if price_per_hour is not None:
        parts.append(f"cost {_money(cost_of(found, price_per_hour)[1])}")
    text = " · ".join(parts)
    if not brief:
        text += f' <span class="wb-soft">{escape(assumed(found, sharing))}</span>'
    # Of numbers that nothing can reach, a small box has no room; the details have them.
    return _wrong(found) or f'<p class="wb-line-of-all">{text}</p>'


def headline_html(found: Mapping[str, Any], price_per_hour: float | None = None, sharing: int = 0) -> str:
    """Return the numbers: time with its band, speed, memory against the device, parameters, FLOPs, cost;
    and what is wrong.

    Args:
        price_per_hour: of the device in any currency; None leaves the cost out.
        sharing: runs that train on the machine now, which the numbers know nothing of.
    """
    low, high = (duration_words(found[name]) for name in ("seconds_low", "seconds_high"))
    # A budget in seconds is kept, whatever the machine does.
    band = f"{low} to {high}" if low != high else "as the budget says"
    share = found["memory_bytes"] / max(1, found["device_memory_bytes"])
    of_device = f"{share_words(share)} of {bytes_words(found['device_memory_bytes'])}"
    tiles = [
        ("training time", duration_words(found["seconds"]), band),
        ("speed", f"{count(found['tokens_per_second'])}<small> tokens/s</small>", f"{count(found['tokens'])} in all"),
        ("memory for training", bytes_words(found["memory_bytes"]), of_device),
        ("steps", count(found["steps"]), _step_tokens(found)),
        ("parameters", count(found["parameters"]), "trained"),
        ("FLOPs", large(found["flops"]), f"{large(found['flops_per_token'])} per token"),
    ]
    if price_per_hour is not None:
        least, likely, most = (_money(value) for value in cost_of(found, price_per_hour))
        tiles.append(("cost", likely, f"{least} to {most}" if least != most else f"at {price_per_hour:g} per hour"))
    body = "".join(
        f"<li><span>{name}</span> <strong>{value}</strong> <span>{more}</span></li>" for name, value, more in tiles
    )
    # A list: pages style <dl> in ways of their own.
    return f'<ul class="wb-tiles">{body}</ul>{_wrong(found)}<p class="wb-soft">{escape(assumed(found, sharing))}</p>'


def _step_tokens(found: Mapping[str, Any]) -> str:
    """Return tokens of a step: of every one, or of the smallest and the largest;
    empty where an earlier version kept none.
    """
    rows, lengths = (found["schedules"].get(f"data.{name}", ()) for name in ("batch_size", "sequence_length"))
    if not (rows and lengths):
        return ""
    sizes = sorted({round(rows) * round(length) for rows, length in zip(rows, lengths, strict=True)})
    return f"{' to '.join(count(size) for size in dict.fromkeys((sizes[0], sizes[-1])))} tokens each"


def details_html(found: Mapping[str, Any]) -> str:
    """Return memory by part, the knobs that move, the layers along the budget, and what the numbers leave out."""
    return "".join((_memory(found), _schedules(found), _layers(found), _notes(found)))


def forecast_html(found: Mapping[str, Any]) -> str:
    """Return headline and details together, as the report has them."""
    return f'<div class="wb-forecast">{headline_html(found)}{details_html(found)}</div>'


def comparison_html(rows: Sequence[Compared], name: str) -> str:
    """Forecast and measured side by side."""
    body = "".join(
        f'<tr><th scope="row">{escape(row.name)}</th><td>{escape(row.ahead)}</td><td>{escape(row.measured)}</td>'
        f"<td{_heat(row)}>{escape(row.ratio_words)}</td><td>{escape(row.words)}</td></tr>"
        for row in rows
    )
    head = "".join(f'<th scope="col">{title}</th>' for title in ("forecast", "measured", "of the forecast", ""))
    caption = f"<caption>{escape(name)}: forecast ({MEASURED_SPEED}) and measured</caption>"
    return (
        f'<div class="wb-forecast"><table class="wb-compared">{caption}'
        f'<thead><tr><th scope="col"></th>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


def _money(value: float) -> str:
    return f"{value:,.2f}" if value >= 0.1 else f"{value:.2g}"


def _heat(row: Compared) -> str:
    return "" if row.off is None else f' class="{"wb-far" if row.missed else "wb-near"}"'


def _wrong(found: Mapping[str, Any]) -> str:
    if why := misfit(found):
        why = f"This {why}. Lower execution.micro_batch_size, data.batch_size, data.sequence_length or the model."
    elif refusal := found.get("refusal"):
        why = f"This run is {refusal}"
    return f'<p class="wb-wrong" role="alert">{escape(why)}</p>' if why else ""


def _memory(found: Mapping[str, Any]) -> str:
    parts = {part: size for part, size in (found.get("memory") or {}).items() if size > 0}
    if not parts:
        return ""
    text = ", ".join(f"{part} {bytes_words(size)}" for part, size in parts.items())
    share = found["memory_bytes"] / max(1, found["device_memory_bytes"])
    of = f"{bytes_words(found['memory_bytes'])} at most, of {bytes_words(found['device_memory_bytes'])}"
    keys = "".join(
        f'<li><i style="background:{colour_of(part)}"></i>{escape(part)} <b>{bytes_words(size)}</b></li>'
        for part, size in parts.items()
    )
    told = gauge(share, f"{share_words(share)} of the device")
    level = "wb-over" if share > 1 else "wb-high" if share > 0.85 else "wb-fine"
    return (
        f"<section><h4>Memory for training</h4>{memory_bar(parts, f'memory by part: {text}')}"
        f'<ul class="wb-keys">{keys}</ul>'
        f'<div class="{level}">{told}</div><p class="wb-soft">{of}</p></section>'
    )


def _schedules(found: Mapping[str, Any]) -> str:
    shown = list(moving(found).items())[:MOST_SCHEDULES]
    if not shown:
        return ""
    cells = []
    for path, (places, values) in shown:
        last = path.rpartition(".")[2]
        quantity = scalar(last if last in SCALARS else path)
        name, values = quantity.label, [quantity.factor * value for value in values]
        begin, end, most = (_value(value) for value in (values[0], values[-1], max(values)))
        text = f"{name} along the budget: {begin} at first, {most} at most, {end} at the end"
        over = f"{begin} → {end}" if max(values) <= max(values[0], values[-1]) else f"{begin} → {most} → {end}"
        cells.append(
            f"<figure>{sparkline(places, values, text)}<figcaption>{escape(name)}"
            f"<b>{escape(over)}</b></figcaption></figure>"
        )
    return f'<section><h4>Schedules</h4><div class="wb-sparks">{"".join(cells)}</div></section>'


def _layers(found: Mapping[str, Any]) -> str:
    shares, plan = at_work(found), found.get("layers") or {}
    if shares is None:
        return ""
    if shares == (1.0, 1.0):
        return "<section><h4>Layers</h4><p>every layer computes and trains in every micro-batch</p></section>"
    text = f"on average {shares[0]:.0%} of the layers compute forward, {shares[1]:.0%} forward and backward"
    keys = "".join(f'<li><i style="background:{part.colour}"></i>{part.words}</li>' for part in reversed(WORK_PARTS))
    picture = layer_map(plan["forward"], plan["backward"], f"layers along the budget: {text}")
    return (
        f'<section><h4>Layers</h4>{picture}<ul class="wb-keys">{keys}<li>first layer at the bottom, '
        f"start of the run at the left</li></ul><p>{text}</p></section>"
    )


def _notes(found: Mapping[str, Any]) -> str:
    lines = [str(note) for note in found.get("notes") or ()]
    lines.append("memory for training comes on top of what the program itself holds")
    # Forecasts of earlier versions do not say.
    if machine := found.get("machine"):
        lines.append(f"from rates of {machine}, measured on {found.get('calibrated') or 'an unknown day'}")
    notes = "".join(f"<li>{escape(note)}</li>" for note in lines)
    return f'<section><ul class="wb-notes">{notes}</ul></section>' if notes else ""


def _value(value: float) -> str:
    if value and abs(value) < 1e-3:
        return f"{value:.1e}".replace(".0e", "e").replace("e-0", "e-")
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
