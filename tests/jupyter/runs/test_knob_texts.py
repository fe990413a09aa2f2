"""Every knob of a recipe is told in words."""

from __future__ import annotations

import json

from workbench import presets
from workbench.jupyter.runs.knob_texts import knob_texts
from workbench.store.effective_knobs import flat


def test_every_knob_of_every_preset_has_a_text_and_unknown_ones_none() -> None:
    for name in presets.names():
        paths = [path for path in flat(json.loads(presets.get(name).to_json())) if path.rpartition(".")[2] != "kind"]
        lacking = set(paths) - set(knob_texts(paths)) - {"schema_version"}
        assert not lacking, (name, lacking)
    found = knob_texts(["data.batch_rule.lr_scaling", "optimizer.schedule.warmup", "seed", "gone", "optimizer.gone"])
    assert list(found) == ["data.batch_rule.lr_scaling", "optimizer.schedule.warmup", "seed"]
