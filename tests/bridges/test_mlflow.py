from __future__ import annotations

from pathlib import Path

import pytest

from tests.bridges.conftest import BEGAN, Recorded, loss_at
from workbench.bridges.bridge import send

mlflow = pytest.importorskip("mlflow")
pytest.importorskip("sqlalchemy")
pytest.importorskip("alembic")


def test_mlflow_reads_series_knobs_and_status_of_two_calls(recorded: Recorded, tmp_path: Path) -> None:
    send(recorded, "mlflow", tmp_path)
    client = mlflow.MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiment = client.get_experiment_by_name("workbench").experiment_id
    assert [run.info.status for run in client.search_runs([experiment])] == ["RUNNING"]
    recorded.steps(16, 20)
    recorded.finish()
    send(recorded, "mlflow", tmp_path)
    (run,) = client.search_runs([experiment])
    assert (run.info.status, run.info.run_name) == ("FINISHED", "Tiny <1>")
    history = client.get_metric_history(run.info.run_id, "loss")
    assert sorted(metric.step for metric in history) == list(range(1, 21))
    values = {metric.step: metric.value for metric in history}
    assert values[10] == pytest.approx(loss_at(10))
    assert values[12] == pytest.approx(loss_at(12))
    assert min(metric.timestamp for metric in history) == round(1000 * (BEGAN + 0.5))
    assert run.data.metrics["score/blimp"] == 0.625
    assert run.data.metrics["layer_grad_norm/02"] == 5.0
    assert run.data.params["optimizer.lr"] == "0.001"
    assert run.data.params["data.paths"] == '["a", "b"]'
    assert list(tmp_path.glob("artifacts/**/recipe.json"))
