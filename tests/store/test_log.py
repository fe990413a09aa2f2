"""The end of a log: the right lines, from blocks, whatever the bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.store.log import tail


@pytest.mark.parametrize("lines", [0, 1, 3, 2_000, 10_000])
def test_the_end_is_what_reading_all_of_it_gives(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "log"
    path.write_text("".join(f"line {number} {'x' * 90}\n" for number in range(5_000)))
    assert tail(path, lines).splitlines() == path.read_text().splitlines()[max(0, 5_000 - lines) :]


def test_odd_logs(tmp_path: Path) -> None:
    assert tail(tmp_path / "gone", 3) == ""
    (tmp_path / "log").write_bytes(b"\xff\x00 no newline")
    assert tail(tmp_path / "log", 3) == "\ufffd\x00 no newline"


def test_only_what_follows_a_place_is_read_and_never_a_line_of_gigabytes(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("of an earlier attempt\nshort\n")
    assert tail(log, 9, len("of an earlier attempt\n")) == "short"
    assert tail(log, 9, 1000) == ""
    log.write_text("bar\r" * 100_000)
    assert len(tail(log, 2)) <= 2 * 4096
