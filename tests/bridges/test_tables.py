from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from tests.bridges.conftest import BEGAN, RECIPE, Recorded, loss_at
from workbench.bridges import tables
from workbench.bridges.bridge import send


def test_csv_has_a_row_per_step_and_grows(recorded: Recorded, tmp_path: Path) -> None:
    send(recorded, "csv", tmp_path)
    recorded.steps(16, 20)
    recorded.finish()
    folder, opened_by = send(recorded, "csv", tmp_path)
    path = folder / f"{recorded.folder.id}.csv"
    assert str(path) in opened_by
    with path.open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == list(range(1, 21))
    assert list(rows[0])[:5] == ["step", "time", "seconds", "tokens", "flops"]
    assert rows[6]["loss"] == "nan"
    assert rows[6]["heldout_loss"] == ""
    assert float(rows[19]["heldout_loss"]) == 7.5
    assert float(rows[19]["layer_grad_norm/02"]) == 5.0
    assert float(rows[0]["time"]) == BEGAN + 0.5
    about = json.loads((folder / f"{recorded.folder.id}.json").read_text())
    assert about["recipe"] == RECIPE
    assert about["scores"] == [{"step": 20, "score/blimp": 0.625}]
    assert [event["kind"] for event in about["events"]] == ["checkpoint"] * 3


def test_parquet_is_read_by_pandas_with_its_types(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    # Several row groups, the first of them before the first evaluation.
    monkeypatch.setattr(tables, "BATCH", 6)
    recorded.finish()
    send(recorded, "parquet", tmp_path)
    table = pandas.read_parquet(tmp_path / f"{recorded.folder.id}.parquet")
    assert table["step"].dtype == "int64"
    assert table["loss"].dtype == "float64"
    assert [round(each, 9) for each in table["loss"].drop(6)] == [round(loss_at(s), 9) for s in range(1, 16) if s != 7]
    assert table["heldout_loss"].notna().sum() == 1
    assert not list(tmp_path.glob("*.tmp"))
