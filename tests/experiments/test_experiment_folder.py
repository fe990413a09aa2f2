"""Where the folders of races and sweeps stand, and in which order they are listed."""

from __future__ import annotations

import os
from pathlib import Path

from workbench.racing.race_folder import RaceFolder


def test_of_two_begun_in_one_second_the_one_written_first_is_older(tmp_path: Path) -> None:
    root = RaceFolder.root(tmp_path / "runs")
    written = ["20260101-000001-race-aaaaaa-ffff", "20260101-000001-race-aaaaaa-0000", "20260101-000000-race-aaaaaa-1"]
    for moment, name in enumerate(written):
        folder = RaceFolder(root / name)
        folder.path.mkdir(parents=True)
        folder.plan.write_text("{}")
        os.utime(folder.plan, (1000 + moment, 1000 + moment))
    (root / "20260101-000002-race-aaaaaa-2").mkdir()
    assert RaceFolder.ids(tmp_path / "runs") == [written[2], written[0], written[1]]
