"""The picture and the report's sections of a fine-tuning."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from workbench.experiments.finetune.finetuning_words import FinetuningSnapshot
from workbench.experiments.snapshot import Drawing, wrapped_table
from workbench.plots.tables import choices_table

if TYPE_CHECKING:
    import plotly.graph_objects as go

_CAPTION = "A point per run. Rates are chosen on these examples: no result."


def drawings(seen: FinetuningSnapshot) -> dict[str, Drawing]:
    """Return the picture of a fine-tuning by key; none before a run has ended."""
    if not seen.now.dev:
        return {}
    return {"rates/all": Drawing("dev score against rate", partial(_figure, seen), seen.table_html, _CAPTION)}


def _figure(seen: FinetuningSnapshot) -> go.Figure:
    import plotly.graph_objects as go

    from workbench.telemetry.quantities import RUN_COLOURS

    figure = go.Figure()
    for start, colour in zip(seen.plan.recipes, RUN_COLOURS, strict=False):
        found = sorted((job.rate, score) for job, score in seen.now.dev.items() if job.start == start)
        figure.add_scatter(x=[rate for rate, _ in found], y=[score for _, score in found], name=start,
                           mode="lines+markers", line={"color": colour})  # fmt: skip
    figure.update_xaxes(type="log", title="learning rate")
    figure.update_yaxes(title=f"dev {seen.plan.metric}")
    return figure


def png(seen: FinetuningSnapshot) -> bytes:
    """Return nothing: table and sentences say it all in a cell."""
    return b""


def sections(seen: FinetuningSnapshot) -> dict[str, str]:
    """Return the report's sections before the picture, by title, as HTML."""
    tests = seen.now.tested
    found = {}
    if tests.get("scores"):
        titles = ["score", *tests["scores"], tests["baseline_kind"]]
        rows = [[name, *(f"{sum(of[name]) / len(of[name]):.4f}" for of in tests["scores"].values()),
                 f"{tests['baseline'][name]:.4f}"] for name in tests["baseline"]]  # fmt: skip
        found["Result: the test"] = wrapped_table(titles, rows)
    return {**found, "Runs": wrapped_table(*seen.table())}


def recipe_section(seen: FinetuningSnapshot) -> dict[str, str]:
    """Return the report's last section."""
    return {"Recipe of the first rate": choices_table(seen.plan.recipes["trained"])}
