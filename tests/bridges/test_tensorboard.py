from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from tests.bridges.conftest import BEGAN, Recorded, loss_at
from workbench.bridges.bridge import send

accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def opened(folder: Path, run_id: str) -> Any:
    found = accumulators.EventAccumulator(str(folder / run_id), size_guidance={"scalars": 0, "tensors": 0})
    return found.Reload()


def test_tensorboard_reads_series_events_and_recipe(recorded: Recorded, tmp_path: Path) -> None:
    recorded.finish()
    send(recorded, "tensorboard", tmp_path)
    found = opened(tmp_path, recorded.folder.id)
    losses = found.Scalars("loss")
    assert [event.step for event in losses] == list(range(1, 16))
    assert all(event.value == pytest.approx(loss_at(event.step)) for event in losses if event.step != 7)
    assert math.isnan(losses[6].value)
    assert losses[1].wall_time == BEGAN + 1.0
    assert [event.value for event in found.Scalars("layer_grad_norm/02")] == [1.25, 2.5, 3.75]
    assert found.Scalars("tokens")[-1].value == 15 * 256
    assert found.Scalars("score/blimp")[0].value == 0.625
    assert found.SummaryMetadata("loss").display_name == "training loss (nats)"
    assert b"lans" in found.Tensors("recipe")[0].tensor_proto.string_val[0]
    assert found.Tensors("events/checkpoint")[-1].tensor_proto.string_val[0] == b"saved step-15"
    from tensorboard.plugins.hparams import metadata

    content = found.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    knobs = metadata.parse_session_start_info_plugin_data(content).hparams
    assert knobs["optimizer.lr"].number_value == 0.001


def test_a_second_call_adds_and_takes_back_as_the_run_did(recorded: Recorded, tmp_path: Path) -> None:
    send(recorded, "tensorboard", tmp_path)
    recorded.steps(13, 20, shift=2.0, rewind=12)
    recorded.finish()
    send(recorded, "tensorboard", tmp_path)
    found = opened(tmp_path, recorded.folder.id)
    losses = {event.step: event.value for event in found.Scalars("loss")}
    assert len(found.Scalars("loss")) == 20, "no step twice"
    assert losses[12] == pytest.approx(loss_at(12))
    assert losses[13] == pytest.approx(9 - 1.3 + 2.0)
    assert len(found.Tensors("events/checkpoint")) == 3
    assert len(found.Tensors("recipe")) == 1
