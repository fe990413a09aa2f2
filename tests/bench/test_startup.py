"""Start-up is measured in fresh processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.bench.startup import COMMANDS, measure


@pytest.mark.process
def test_each_command_is_timed(tmp_path: Path) -> None:
    seconds = measure(1, str(tmp_path))
    assert set(seconds) == set(COMMANDS)
    assert seconds["import workbench"]["median"] > 0
