"""Telemetry under everything that can happen to a writer: killed, out of space, rewound, followed while it writes."""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from workbench.telemetry.streams import STREAMS, TelemetryReader, TelemetryWriter, number, read_telemetry, stream_path


def write(folder: Path, steps: range, **values: float) -> None:
    writer = TelemetryWriter(folder)
    for step in steps:
        writer.scalars(step, step * 0.5, step * 100, loss=10.0 - step, **values)
        writer.layers(step, keep=[1.0, 0.5, None])
    writer.close()


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    write(tmp_path, range(1, 4), lr=0.1)
    telemetry = read_telemetry(tmp_path)
    assert telemetry.series("loss") == ([1, 2, 3], [9.0, 8.0, 7.0])
    assert telemetry.series("lr", x="tokens") == ([100, 200, 300], [0.1, 0.1, 0.1])
    assert telemetry.layers[-1]["keep"] == [1.0, 0.5, None]
    assert [record["seq"] for record in telemetry.scalars] == [0, 1, 2]


def test_values_that_json_has_no_word_for_survive(tmp_path: Path) -> None:
    writer = TelemetryWriter(tmp_path)
    writer.scalars(1, 0.0, 0, loss=math.nan, grad_norm=math.inf, lr=None)
    writer.layers(1, grad_norm=[math.nan, -math.inf])
    writer.close()
    for stream in STREAMS:
        for line in stream_path(tmp_path, stream).read_text().splitlines():
            json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    telemetry = read_telemetry(tmp_path)
    assert math.isnan(telemetry.series("loss")[1][0])
    assert number(telemetry.scalars[0]["grad_norm"]) == math.inf
    assert telemetry.series("lr") == ([], [])
    assert number(telemetry.layers[0]["grad_norm"][1]) == -math.inf


def test_sequence_numbers_go_on_after_reopening(tmp_path: Path) -> None:
    write(tmp_path, range(1, 3))
    write(tmp_path, range(3, 5))
    assert [record["seq"] for record in read_telemetry(tmp_path).scalars] == [0, 1, 2, 3]


def test_reader_follows_by_offset_and_never_sees_half_a_line(tmp_path: Path) -> None:
    reader = TelemetryReader(tmp_path / "later")
    assert reader.poll() == {stream: [] for stream in STREAMS}
    write(tmp_path / "later", range(1, 3))
    assert [record["step"] for record in reader.poll()["scalars"]] == [1, 2]
    assert reader.poll()["scalars"] == []
    path = stream_path(tmp_path / "later", "scalars")
    with path.open("ab") as file:
        file.write(b'{"seq": 2, "step": 3, "seco')
    assert reader.poll()["scalars"] == []
    with path.open("ab") as file:
        file.write(b'nds": 1.5, "tokens": 300, "loss": 7}\n')
    assert [record["step"] for record in reader.poll()["scalars"]] == [3]
    assert reader.telemetry.series("loss") == ([1, 2, 3], [9.0, 8.0, 7])


def test_half_a_line_of_a_dead_writer_is_cut_off(tmp_path: Path) -> None:
    write(tmp_path, range(1, 3))
    path = stream_path(tmp_path, "scalars")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"seq": 2, "st')
    write(tmp_path, range(3, 4))
    assert path.read_bytes().startswith(whole)
    assert [record["step"] for record in read_telemetry(tmp_path).scalars] == [1, 2, 3]


@pytest.mark.parametrize(
    "garbage", [b"\xff\xfe\x00\n", b"not json\n", b"[1, 2]\n", b'"text"\n', b"17\n", b"{}\n", b"\n"]
)
def test_a_damaged_line_does_not_hide_the_rest(tmp_path: Path, garbage: bytes) -> None:
    write(tmp_path, range(1, 3))
    with stream_path(tmp_path, "scalars").open("ab") as file:
        file.write(garbage)
    write(tmp_path, range(3, 4))
    assert read_telemetry(tmp_path).series("loss")[0] == [1, 2, 3]


def test_rewind_forgets_later_steps_once(tmp_path: Path) -> None:
    write(tmp_path, range(1, 6))
    reader = TelemetryReader(tmp_path)
    reader.poll()
    writer = TelemetryWriter(tmp_path)
    writer.event(3, "resume", "from step 3")
    writer.rewind(3)
    writer.scalars(4, 2.0, 400, loss=-1.0)
    writer.close()
    reader.poll()
    assert reader.telemetry.series("loss") == ([1, 2, 3, 4], [9.0, 8.0, 7.0, -1.0])
    assert [record["step"] for record in reader.telemetry.layers] == [1, 2, 3]
    assert reader.telemetry.version > 0
    fresh = read_telemetry(tmp_path)
    assert fresh.scalars == reader.telemetry.scalars
    assert [event["kind"] for event in fresh.events] == ["resume"]


@pytest.mark.process
def test_kill_9_loses_at_most_a_second(tmp_path: Path) -> None:
    program = textwrap.dedent(
        """
        import sys, time
        from pathlib import Path
        from workbench.telemetry.streams import TelemetryWriter
        writer, step = TelemetryWriter(Path(sys.argv[1])), 0
        while True:
            step += 1
            writer.scalars(step, time.time(), step)
            if step == 1:
                writer.flush()
            time.sleep(0.002)
        """
    )
    child = subprocess.Popen([sys.executable, "-c", program, str(tmp_path)])
    try:
        path = stream_path(tmp_path, "scalars")
        deadline = time.monotonic() + 30
        while not (path.exists() and path.stat().st_size > 5_000):
            assert time.monotonic() < deadline, "the writer never wrote"
            time.sleep(0.01)
    finally:
        killed = time.time()
        child.send_signal(signal.SIGKILL)
        child.wait()
    block = path.read_bytes()
    assert block.endswith(b"\n"), "a line was torn"
    records = [json.loads(line) for line in block.splitlines()]
    assert [record["step"] for record in records] == list(range(1, len(records) + 1))
    assert killed - records[-1]["seconds"] <= 1.0


def test_a_full_disk_leaves_whole_lines_and_is_told(tmp_path: Path) -> None:
    # A limit on the size of files gives a short write and then an error, as a full disk does.
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    told: list[str] = []
    writer = TelemetryWriter(tmp_path, flush_seconds=3600, on_full=told.append)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (5_000, hard))
        for step in range(1, 101):
            writer.scalars(step, 0.0, step, loss=1.0 / 3.0)
        writer.flush()
        writer.scalars(101, 0.0, 101, loss=0.5)
        writer.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    block = stream_path(tmp_path, "scalars").read_bytes()
    assert block
    assert block.endswith(b"\n")
    assert len(block) <= 5_000
    assert told
    assert "disk" in told[0]
    writer.scalars(102, 0.0, 102, loss=0.25)
    writer.close()
    steps = [record["step"] for record in read_telemetry(tmp_path).scalars]
    # What did not fit is written once there is space again, in order; nothing twice.
    assert steps == list(range(1, 103))


def test_the_stream_must_not_be_a_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("precious")
    folder = tmp_path / "telemetry"
    folder.mkdir()
    stream_path(folder, "scalars").symlink_to(elsewhere)
    with pytest.raises(OSError, match="symbolic links"):
        TelemetryWriter(folder)
    assert elsewhere.read_text() == "precious"


def test_writing_is_cheap(tmp_path: Path) -> None:
    writer = TelemetryWriter(tmp_path, flush_seconds=0.1)
    began = time.process_time()
    for step in range(2_000):
        writer.scalars(step, 1.0, step, **{f"name_{index}": 0.1 for index in range(15)})
    writer.close()
    # 1% of a 20 ms step is 200 us; busy machines still manage a record in half of that.
    assert (time.process_time() - began) / 2_000 < 2e-4
    assert os.path.getsize(stream_path(tmp_path, "scalars")) > 0


def test_closing_twice_closes_nothing_of_others(tmp_path: Path) -> None:
    writer = TelemetryWriter(tmp_path / "telemetry")
    writer.close()
    with (tmp_path / "other").open("w") as other:  # may get a descriptor that the writer had
        writer.close()
        other.write("still open")
    assert (tmp_path / "other").read_text() == "still open"
