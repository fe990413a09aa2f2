"""Messages: decimation, sizes, and a decoder written from the format's description."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.jupyter.feed import wire
from workbench.jupyter.feed.cursor import cursor
from workbench.jupyter.feed.track import Track
from workbench.store.folder import RunFolder, write_json
from workbench.store.state import write_state
from workbench.telemetry.streams import TelemetryWriter


class Reader:
    """Takes columns off a block as the page does."""

    def __init__(self, block: bytes) -> None:
        self.block, self.offset = block, 0

    def take(self, dtype: str, count: int) -> np.ndarray:
        column = np.frombuffer(self.block, dtype, count, self.offset)
        self.offset += -(-column.nbytes // 8) * 8
        return column


def decode(header: dict[str, Any], block: bytes, names: list[str], layers: int, layer_names: list[str]) -> dict:
    """Columns of a message about one run, by name."""
    reader, entry = Reader(block), header["runs"][0]
    out: dict[str, Any] = {}
    if "clock" in entry:
        out |= {
            key: reader.take(t, entry["clock"])
            for key, t in (("step", "<i4"), ("seconds", "<f4"), ("tokens", "<f8"), ("flops", "<f4"))
        }
        out |= {names[place]: (out["step"], reader.take("<f4", entry["clock"])) for place in entry["dense"]}
        for place, count, recorded in entry["sparse"]:
            assert count <= recorded
            out[names[place]] = (reader.take("<i4", count), reader.take("<f4", count))
    if entry.get("columns"):
        out["layer_steps"] = reader.take("<i4", entry["columns"])
        for name in layer_names:
            dtype = "u1" if name == "state" else "<f4"
            out[f"layer {name}"] = reader.take(dtype, entry["columns"] * layers).reshape(-1, layers)
    assert reader.offset == len(block), "nothing is left over"
    return out


@pytest.fixture
def track(tmp_path: Path) -> Track:
    folder = RunFolder(tmp_path / "run-a")
    folder.path.mkdir()
    write_json(folder.recipe, {"name": "x" * 300})
    write_state(folder, status="queued", heartbeat=time.time())
    return Track(folder)


def fill(track: Track, first: int, count: int, layers: int = 4, every: int = 10) -> None:
    """`count` records, a layer record with each `every`-th, a held-out loss with each 7th."""
    writer = TelemetryWriter(track.folder.telemetry, flush_seconds=60)
    for step in range(first, first + count):
        extra = {"heldout_loss": 5.0} if step % 7 == 0 else {}
        writer.scalars(step, step / 2, step * 4096, loss=10 / step, lr=1e-3, tokens_per_second=1e4, mfu=0.3, **extra)
        if step % every == 0:
            writer.layers(
                step, state=[0] * (layers - 1) + [None], grad_norm=[float(step)] * layers, keep=[1.0] * layers
            )
    writer.close()


def test_extremes_keep_ends_spikes_and_the_limit() -> None:
    steps = np.arange(100_000)
    values = np.sin(steps / 5000).astype(np.float32)
    values[[777, 54_321]] = -9, 9
    values[1000:2000] = np.nan
    keep = wire.extremes(steps, values, 2000)
    assert len(keep) <= 2000
    assert {0, 777, 54_321, 99_999} <= set(keep.tolist())
    assert (np.diff(keep) > 0).all()
    assert not np.isnan(values[keep]).any()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 50])
def test_extremes_of_short_or_flat_curves(count: int) -> None:
    assert len(wire.extremes(np.zeros(count), np.ones(count, np.float32), 10)) == min(count, 10 if count <= 10 else 2)


def test_snapshot_holds_what_was_said(track: Track) -> None:
    fill(track, 1, 100)
    track.poll()
    header, block = wire.snapshot([track])
    entry = header["runs"][0]
    assert entry["names"] == ["loss", "lr", "tokens_per_second", "mfu", "heldout_loss"]
    out = decode(header, block, entry["names"], entry["layers"], entry["layer_names"])
    np.testing.assert_allclose(out["loss"][1], 10 / np.arange(1, 101), rtol=1e-6)
    assert out["heldout_loss"][0].tolist() == list(range(7, 101, 7))
    assert out["tokens"][-1] == 100 * 4096
    assert out["layer_steps"].tolist() == list(range(10, 101, 10))
    assert out["layer state"][0].tolist() == [0, 0, 0, 255]
    json.dumps(header, allow_nan=False)


def test_delta_holds_only_what_is_new_in_at_most_a_kilobyte(track: Track) -> None:
    fill(track, 1, 1000)
    track.poll()
    seen = cursor([track])
    fill(track, 1001, 10)
    track.poll()
    found = wire.update([track], seen)
    assert found is not None
    header, block = found
    out = decode(header, block, track.names(), track.layers, list(track.layer_values))
    assert out["step"].tolist() == list(range(1001, 1011))
    assert out["loss"][0].tolist() == list(range(1001, 1011))
    assert out["heldout_loss"][0].tolist() == [1001, 1008]
    assert out["layer_steps"].tolist() == [1010]
    assert len(block) + len(json.dumps(header, separators=(",", ":"))) <= 1024


def test_extra_scalars_come_when_asked_for(track: Track) -> None:
    writer = TelemetryWriter(track.folder.telemetry)
    writer.scalars(1, 1, 1, loss=1.0, grad_norm=2.0, **{"depth.theta": 0.5})
    writer.close()
    track.poll()
    assert track.names() == ["loss", "depth.theta"]
    header, block = wire.snapshot([track], frozenset(["grad_norm", "no_such"]))
    assert header["runs"][0]["others"] == ["depth.theta", "grad_norm", "loss"]
    assert decode(header, block, header["runs"][0]["names"], 0, [])["grad_norm"][1].tolist() == [2.0]


@pytest.mark.parametrize(("count", "layers"), [(0, 4), (30, 4), (20_000, 4), (5000, 48)])
def test_saved_snapshot_is_complete_and_small(track: Track, count: int, layers: int) -> None:
    if count:
        fill(track, 1, count, layers)
    track.poll()
    whole = wire.saved_snapshot([track])
    assert 0 < len(whole) <= wire.SNAPSHOT_BYTES
    length = int.from_bytes(whole[:4], "little")
    header = json.loads(whole[4 : 4 + length])
    assert (4 + length) % 8 == 0
    entry = header["runs"][0]
    out = decode(header, whole[4 + length :], entry["names"], entry["layers"], entry["layer_names"])
    if count:
        assert out["loss"][0][[0, -1]].tolist() == [1, count]
        assert "state" in entry["layer_names"]


@pytest.mark.parametrize("columns", [8, 24, 600])
def test_snapshots_of_few_columns_show_every_stage(track: Track, columns: int) -> None:
    writer = TelemetryWriter(track.folder.telemetry, flush_seconds=60)
    for step in range(1, 1001):
        code = 3 if step < 400 else 5 if step < 403 else 0
        writer.layers(step, state=[0, code], grad_norm=[1.0, None])
    writer.close()
    track.poll()
    header, block = wire.snapshot([track], columns=columns)
    out = decode(header, block, [], 2, ["state", "grad_norm"])
    assert len(out["layer_steps"]) <= columns
    assert set(out["layer state"][:, 1].tolist()) == {0, 3, 5}
    assert {400, 403} <= set(out["layer_steps"].tolist()), "stages start where they started"


def test_stages_outlive_a_flood_of_events(track: Track) -> None:
    writer = TelemetryWriter(track.folder.telemetry)
    writer.event(10, "stage", "stage 1 of 2: layers 1-2 of 4 exist")
    for step in range(1000):
        writer.event(step, "evaluation", "held-out loss 5")
    writer.close()
    track.poll()
    events = wire.snapshot([track])[0]["runs"][0]["events"]
    assert [event["kind"] for event in events[:2]] == ["stage", "evaluation"]
    assert len(events) == 201


@pytest.mark.parametrize(
    ("data", "sent"),
    [
        ({"path": "optimizer.lr", "value": 0.5, "secret": "x"}, {"path": "optimizer.lr", "value": 0.5}),
        ({"path": "x" * 5000, "value": 1}, None),
        ({"path": "optimizer.lr", "value": float("nan")}, None),
        ("[", None),
    ],
)
def test_a_page_gets_of_an_event_what_it_draws(data: object, sent: object) -> None:
    event = {"step": 1, "kind": "knob", "text": "turned", "time": 1.0}
    assert wire._event(event | {"data": data}) == event | ({"data": sent} if sent else {})
    # As runs of before wrote it.
    assert wire._event(event | {"path": "seed", "value": 1, "by": "ada"}) == event | {
        "data": {"path": "seed", "value": 1}
    }


def test_a_fork_to_another_optimizer_is_told_whole_and_a_log_of_megabytes_is_not() -> None:
    fork = "forked from a: " + ", ".join(f"optimizer.knob_{number} None -> 0.95" for number in range(25))
    assert wire._event({"kind": "fork", "text": fork})["text"] == fork
    error = wire._event({"kind": "error", "text": "x" * 10**6})["text"]
    assert (len(error), error[-1]) == (2000, "…")


def test_saved_snapshot_of_many_runs_stays_small(track: Track) -> None:
    fill(track, 1, 3000, 12)
    track.poll()
    assert 0 < len(wire.saved_snapshot([track] * 8)) <= wire.SNAPSHOT_BYTES
