"""The pictures and the report's sections of a tuning: those of its race first, then each knob of its sweep."""

from __future__ import annotations

from workbench.experiments.race import race_pictures
from workbench.experiments.snapshot import Drawing, wrapped_table
from workbench.experiments.sweep import sweep_pictures
from workbench.experiments.tune.tuning_words import TuningSnapshot
from workbench.plots.tables import choices_table

_KNOB = "Grey: single seeds. Large: their mean. Scores of text that settings are chosen on: no result."


def drawings(seen: TuningSnapshot) -> dict[str, Drawing]:
    """Return the pictures of a tuning by key."""
    race = race_pictures.drawings(seen.now.race) if seen.now.race is not None else {}
    knobs = {key: each._replace(caption=_KNOB) for key, each in sweep_pictures.drawings(seen.now.sweep).items()
             if key.startswith("knob/")}  # fmt: skip
    return race | knobs


def png(seen: TuningSnapshot) -> bytes:
    """Draw its race without a browser; empty before there is one."""
    return race_pictures.png(seen.now.race) if seen.now.race is not None else b""


def sections(seen: TuningSnapshot) -> dict[str, str]:
    """Return the report's sections before the pictures, by title, as HTML."""
    race = {"Result: the race": seen.now.race.table_html()} if seen.now.race is not None else {}
    return {**race, "Evidence: every setting that was tried": wrapped_table(*seen.table())}


def recipe_section(seen: TuningSnapshot) -> dict[str, str]:
    """Return the report's last section."""
    return {"Recipe, with what was kept": choices_table(seen.now.recipe.to_dict())}
