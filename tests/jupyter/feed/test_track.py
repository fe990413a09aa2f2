"""A run as columns: growth, late names, rewinds, thinning, status."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from tests.jupyter.live import run_folder
from workbench.jupyter.feed.track import LAYER_COLUMNS, Track
from workbench.store.folder import RunFolder, write_json
from workbench.store.labels import label
from workbench.store.state import write_state
from workbench.telemetry.streams import TelemetryWriter


def test_poll_parses_only_what_is_new(folder: RunFolder, writer: TelemetryWriter) -> None:
    track = Track(folder)
    assert track.poll().first_row == 0
    writer.scalars(1, 0.5, 100, loss=9.0)
    writer.flush()
    assert (track.poll().first_row, list(track.steps)) == (0, [1])
    writer.scalars(2, 1.0, 200, loss=8.0)
    writer.flush()
    news = track.poll()
    assert (news.first_row, news.restart) == (1, False)
    assert list(track.columns.values("loss")) == [9.0, 8.0]
    assert track.poll().first_row == 2


def test_a_name_that_comes_late_is_nan_before_and_restarts_pages(folder: RunFolder, writer: TelemetryWriter) -> None:
    track = Track(folder)
    writer.scalars(1, 0.5, 100, loss=9.0)
    writer.flush()
    track.poll()
    writer.scalars(2, 1.0, 200, heldout_loss=float("inf"))
    writer.flush()
    assert track.poll().restart
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
        assert track.poll().restart
        assert track.name == called
        assert not track.poll().restart
    label(folder, notes="as hoped")
    assert not track.poll().restart


def test_a_run_that_has_ended_says_what_it_learned(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "run-a", "finished", False)
    write_state(folder, status="finished", heldout_loss=4.9)
    scored = {"score": {"kind": "masked-only", "version": 2}, "unigram_entropy": 6.5, "bigram_entropy": 4.0}
    write_json(folder.evaluations, scored)
    assert Track(folder).poll().changes["verdict"] == (
        "held-out loss at [MASK] 4.900 nats, word frequencies 6.500, neighbours 4.000: "
        "learning neighbours: 1.60 nats below word frequencies, 0.90 above neighbour counts"
    )
    write_state(folder, status="paused")
    assert Track(folder).poll().changes["verdict"] == "", "it goes on"


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
    assert track.poll().restart
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
    assert (track.poll().restart, track.layers) == (False, 4), "growing sends nothing twice"
    # A plug-in's trainer may tell only the layers that exist: then the picture grows, and never shrinks again.
    writer.layers(3, state=[0] * 6)
    writer.layers(4, state=[0])
    writer.flush()
    assert (track.poll().restart, track.layers) == (True, 6)


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
    assert track.poll().changes["step"] == 0
    assert track.name == "a <b>run</b>"
    assert track.poll().changes == {}
    said = {"unigram_entropy": 6.5, "bigram_entropy": 4.5, "score": {"kind": "masked-only", "version": 2}}
    write_json(folder.environment, said)
    changes = track.poll().changes
    assert changes == {"levels": {"word frequencies": 6.5, "neighbours": 4.5}}, "the score was named before"
    write_state(folder, heldout_loss=6.0)
    assert track.poll().changes["learned"] == "neighbours"
    # As a trainer of before left it: its score is named, and nothing is claimed.
    write_json(folder.environment, {"unigram_entropy": 6.5})
    assert track.poll().changes == {"score": "80/10/10 score", "levels": {}, "learned": None}
    write_state(folder, status="running", step=3, loss=float("nan"))
    track._looked_at_lock = -math.inf
    changes = track.poll().changes
    assert (changes["status"], changes["step"]) == ("lost", 3), "nobody holds the lock"
    assert track.final
    assert track.status["loss"] is None, "JSON has no NaN"


def test_a_stopped_run_says_that_its_text_is_gone(tmp_path: Path) -> None:
    (text := tmp_path / "text.txt").write_text("text")
    data = {"kind": "files", "paths": [str(text)]}
    track = Track(run_folder(tmp_path / "run-a", status="stopped", alive=False, data=data))
    track.poll()
    assert track.status["missing_text"] == ""
    text.unlink()
    assert track.poll().changes == {"missing_text": str(text)}


def test_a_fork_says_how_long_its_parent_had_trained(folder: RunFolder) -> None:
    track = Track(folder)
    track.poll()
    assert track.status["seconds_before"] == 0.0
    write_json(folder.origin, {"run": "a", "step": 40, "seconds": 29.5})
    assert track.poll().changes["seconds_before"] == 29.5
