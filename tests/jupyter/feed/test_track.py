"""A run as columns: growth, late names, rewinds, thinning, status."""

from __future__ import annotations

import gc
import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np

from tests.jupyter.live import run_folder
from workbench.jupyter.feed.cursor import News, cursor, news_since
from workbench.jupyter.feed.track import LAYER_COLUMNS, Track
from workbench.store.folder import RunFolder, write_json
from workbench.store.labels import label
from workbench.store.state import write_state
from workbench.telemetry.streams import TelemetryWriter


def poll(track: Track) -> News | None:
    """Read a run; what is new to a page that has seen all before, None where it needs everything again."""
    seen = cursor([track])
    track.poll()
    found = news_since([track], seen)
    return None if found is None else found[0]


def changes(track: Track) -> dict[str, Any]:
    found = poll(track)
    assert found is not None
    return found.changes


def test_poll_parses_only_what_is_new(folder: RunFolder, writer: TelemetryWriter) -> None:
    track = Track(folder)
    writer.scalars(1, 0.5, 100, loss=9.0)
    writer.flush()
    track.poll()
    assert list(track.steps) == [1]
    writer.scalars(2, 1.0, 200, loss=8.0)
    writer.flush()
    news = poll(track)
    assert news is not None
    assert news.first_row == 1
    assert list(track.columns.values("loss")) == [9.0, 8.0]


def test_following_keeps_numbers_and_no_object(folder: RunFolder, writer: TelemetryWriter) -> None:
    """What a kernel or the server grows by while it follows a run: 8 bytes of each clock and 4 of each scalar."""
    track, names = Track(folder), [f"gauge_{number}" for number in range(20)]
    kept = []
    tracemalloc.start()
    try:
        for first in (0, 1000):
            for step in range(first, first + 1000):
                writer.scalars(step, step / 100, step, **dict.fromkeys(names, 1.0))
                if step % 100 == 99:
                    writer.flush()
                    poll(track)
            gc.collect()
            kept.append((len(gc.get_objects()), tracemalloc.get_traced_memory()[0]))
    finally:
        tracemalloc.stop()
    assert len(track.steps) == 2000
    assert kept[1][0] - kept[0][0] < 100
    # Columns grow by doubling: twice what the numbers take, at most.
    assert kept[1][1] - kept[0][1] <= 2 * 2000 * (4 * 8 + 20 * 4)


def test_a_name_that_comes_late_is_nan_before_and_restarts_pages(folder: RunFolder, writer: TelemetryWriter) -> None:
    track = Track(folder)
    writer.scalars(1, 0.5, 100, loss=9.0)
    writer.flush()
    track.poll()
    writer.scalars(2, 1.0, 200, heldout_loss=float("inf"))
    writer.flush()
    assert poll(track) is None
    assert [math.isnan(v) for v in track.columns.values("heldout_loss")] == [True, False]
    assert track.columns.values("heldout_loss")[1] == math.inf
    assert math.isnan(track.columns.values("loss")[1])


def test_a_new_name_restarts_pages_also_of_a_run_that_has_ended(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run-a", "finished", False, name="recipe's")
    track = Track(folder)
    track.poll()
    assert (track.name, track.final) == ("recipe's", True)
    for name, called in (("mine", "mine"), ("best", "best"), ("", "recipe's")):
        label(folder, name=name)
        assert poll(track) is None
        assert track.name == called
        assert poll(track) is not None
    label(folder, notes="as hoped")
    assert poll(track) is not None


def test_a_run_that_has_ended_says_what_it_learned(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run-a", "finished", False)
    write_state(folder, status="finished", heldout_loss=4.9)
    scored = {"score": {"kind": "masked-only", "version": 2}, "unigram_entropy": 6.5, "bigram_entropy": 4.0}
    write_json(folder.evaluations, scored)
    assert changes(Track(folder))["verdict"] == (
        "held-out loss at [MASK] 4.900 nats, word frequencies 6.500, neighbours 4.000: "
        "learning neighbours: 1.60 nats below word frequencies, 0.90 above neighbour counts"
    )
    write_state(folder, status="paused")
    assert changes(Track(folder))["verdict"] == "", "it goes on"


def test_numbers_beyond_float32_become_infinite(folder: RunFolder, writer: TelemetryWriter) -> None:
    track = Track(folder)
    writer.scalars(1, 0.5, 100, grad_norm=1e300, loss=float("nan"))
    writer.flush()
    track.poll()
    assert track.columns.values("grad_norm")[0] == math.inf
    assert math.isnan(track.columns.values("loss")[0])


def test_a_rewind_takes_back_scalars_and_layers(folder: RunFolder, writer: TelemetryWriter) -> None:
    track = Track(folder)
    for step in range(1, 6):
        writer.scalars(step, step, step, loss=10.0 - step)
        writer.layers(step, state=[0, 1])
    writer.flush()
    track.poll()
    writer.rewind(2)
    writer.scalars(3, 3, 3, loss=1.0)
    writer.flush()
    assert poll(track) is None
    assert (list(track.steps), list(track.columns.values("loss"))) == ([1, 2, 3], [9.0, 8.0, 1.0])
    assert track.layer_steps == [1, 2]
    assert len(track.layer_values["state"]) == 2


def test_heat_map_columns_are_bounded_and_keep_the_latest_of_each_stretch(
    folder: RunFolder, writer: TelemetryWriter
) -> None:
    track = Track(folder)
    for step in range(1, 9 * LAYER_COLUMNS + 1):
        writer.layers(step, state=[0, 3], grad_norm=[float(step), None])
    writer.flush()
    track.poll()
    assert LAYER_COLUMNS <= len(track.layer_steps) < 2 * LAYER_COLUMNS
    assert len(set(np.diff(track.layer_steps))) == 1, "evenly downsampled"
    assert [v[0] for v in track.layer_values["grad_norm"]] == track.layer_steps
    assert math.isnan(track.layer_values["grad_norm"][0][1])
    assert track.layers == 2


def test_thinning_hides_no_short_stage(folder: RunFolder, writer: TelemetryWriter) -> None:
    track = Track(folder)
    records = 5 * LAYER_COLUMNS
    short = {3 * LAYER_COLUMNS, 3 * LAYER_COLUMNS + 1}
    for step in range(1, records + 1):
        new = 5 if step in short else 3 if step < min(short) else 0
        # The first layer is skipped at random all the time: that is no stage.
        writer.layers(step, state=[step * 7 % 3 == 0, new], ran=[0.5, None if new == 3 else 1.0])
        if step % 700 == 0:
            writer.flush()
            track.poll()
    writer.flush()
    track.poll()
    assert len(track.layer_steps) < 2 * LAYER_COLUMNS
    assert min(short) in track.layer_steps, "the first record of a stage stays"
    assert sum(track.layer_starts) == 2
    assert track.layer_values["state"][track.layer_steps.index(min(short))][1] == 5
    assert len(track.layer_values["ran"]) == len(track.layer_steps) == len(track.layer_starts)
    assert track.layer_steps[-1] > records - 16


def test_stages_without_end_are_thinned_all_the_same(folder: RunFolder, writer: TelemetryWriter) -> None:
    track = Track(folder)
    for step in range(1, 9 * LAYER_COLUMNS + 1):
        writer.layers(step, state=[2 * (step % 2)])
    writer.flush()
    track.poll()
    assert len(track.layer_steps) < 2 * LAYER_COLUMNS


def test_a_model_that_grows_has_its_final_height_from_the_first_record_and_keeps_it(
    folder: RunFolder, writer: TelemetryWriter
) -> None:
    track = Track(folder)
    writer.layers(1, state=[0, 3, 3, 3], grad_norm=[1.0, None, None, None])
    writer.flush()
    track.poll()
    assert track.layers == 4
    writer.layers(2, state=[2, 5, 3, 3], grad_norm=[None, 1.0, None, None])
    writer.flush()
    assert poll(track) is not None, "growing sends nothing twice"
    assert track.layers == 4
    # A plug-in's trainer may tell only the layers that exist: then the picture grows, and never shrinks again.
    writer.layers(3, state=[0] * 6)
    writer.layers(4, state=[0])
    writer.flush()
    assert poll(track) is None
    assert track.layers == 6


def test_a_rewind_to_before_a_stage_finds_it_again(folder: RunFolder, writer: TelemetryWriter) -> None:
    track = Track(folder)
    for step, new in enumerate([3, 3, 5, 5], start=1):
        writer.layers(step, state=[0, new])
    writer.rewind(2)
    writer.layers(3, state=[0, 5])
    writer.flush()
    track.poll()
    assert track.layer_steps == [1, 2, 3]
    assert track.layer_starts == [False, False, True]


def test_status_reports_changes_only_and_a_dead_run_is_lost(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run-a", status="queued", alive=False, name="a <b>run</b>")
    track = Track(folder)
    assert changes(track)["step"] == 0
    assert track.name == "a <b>run</b>"
    assert changes(track) == {}
    said = {"unigram_entropy": 6.5, "bigram_entropy": 4.5, "score": {"kind": "masked-only", "version": 2}}
    write_json(folder.environment, said)
    assert changes(track) == {"levels": {"word frequencies": 6.5, "neighbours": 4.5}}, "the score was named before"
    write_state(folder, heldout_loss=6.0)
    assert changes(track)["learned"] == "neighbours"
    # As a trainer of before left it: its score is named, and nothing is claimed.
    write_json(folder.environment, {"unigram_entropy": 6.5})
    assert changes(track) == {"score": "80/10/10 score", "levels": {}, "learned": None}
    write_state(folder, status="running", step=3, loss=float("nan"))
    track._looked_at_lock = -math.inf
    said = changes(track)
    assert (said["status"], said["step"]) == ("lost", 3), "nobody holds the lock"
    assert track.final
    assert track.status["loss"] is None, "JSON has no NaN"


def test_a_stopped_run_says_that_its_text_is_gone(tmp_path: Path) -> None:
    (text := tmp_path / "text.txt").write_text("text")
    data = {"kind": "files", "paths": [str(text)]}
    track = Track(run_folder(tmp_path / "run-a", status="stopped", alive=False, data=data))
    track.poll()
    assert track.status["missing_text"] == ""
    text.unlink()
    assert changes(track) == {"missing_text": str(text)}


def test_a_fork_says_how_long_its_parent_had_trained(folder: RunFolder) -> None:
    track = Track(folder)
    track.poll()
    assert track.status["seconds_before"] == 0.0
    write_json(folder.origin, {"run": "a", "step": 40, "seconds": 29.5})
    assert changes(track)["seconds_before"] == 29.5
