from __future__ import annotations

from pathlib import Path

import pytest

from tests.bridges.conftest import RECIPE, Recorded, keep_trackio_in, loss_at
from workbench.base.errors import RunError
from workbench.bridges.bridge import send

pytest.importorskip("trackio")


def test_trackio_reads_rows_and_recipe_of_two_calls(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_trackio_in(tmp_path, monkeypatch)
    send(recorded, "trackio", tmp_path)
    recorded.steps(16, 20)
    recorded.finish()
    send(recorded, "trackio", tmp_path)
    from trackio.sqlite_storage import SQLiteStorage

    assert SQLiteStorage.get_runs("workbench") == ["Tiny <1>"]
    logs = SQLiteStorage.get_logs("workbench", "Tiny <1>")
    losses = {row["step"]: row["loss"] for row in logs if "loss" in row}
    assert sum("loss" in row for row in logs) == 20
    assert losses[12] == pytest.approx(loss_at(12))
    assert [row["score/blimp"] for row in logs if "score/blimp" in row] == [0.625]
    config = SQLiteStorage.get_run_config("workbench", "Tiny <1>", run_id=recorded.folder.id)
    assert config["optimizer"] == RECIPE["optimizer"]
    with pytest.raises(RunError, match="trackio in this process writes to"):
        send(recorded, "trackio", tmp_path / "elsewhere")
