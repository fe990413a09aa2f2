"""A real run in every tool: opened by the tool's own reader, it has every loss; TensorBoard has it live."""

from __future__ import annotations

import csv
import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bridges.conftest import inspected, keep_trackio_in
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.bridges import bridge as module
from workbench.bridges.bridge import send
from workbench.client.launch import launch
from workbench.client.run import Run

pytestmark = [pytest.mark.extended, pytest.mark.process]
Losses = dict[int, float]


@pytest.fixture(scope="module")
def run(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that has ended; TensorBoard has followed it, and was looked into while it trained."""
    return launch(tiny_recipe(corpus, steps=1500), runs_dir=tmp_path_factory.mktemp("real") / "runs", say=None)


def in_csv(folder: Path, run: Run) -> Losses:
    with (folder / f"{run.id}.csv").open() as file:
        return {int(row["step"]): float(row["loss"]) for row in csv.DictReader(file) if row["loss"]}


def in_parquet(folder: Path, run: Run) -> Losses:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    table = pandas.read_parquet(folder / f"{run.id}.parquet")
    return dict(zip(table["step"], table["loss"], strict=True))


def in_tensorboard(folder: Path, run: Run) -> Losses:
    accumulators = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = accumulators.EventAccumulator(str(folder / run.id), size_guidance={"scalars": 0}).Reload()
    return {event.step: event.value for event in found.Scalars("loss")} if "loss" in found.Tags()["scalars"] else {}


def in_wandb(folder: Path, run: Run) -> Losses:
    (log,) = folder.glob("wandb/offline-run-*/*.wandb")
    records = map(json.loads, inspected(log).splitlines())
    rows = [record["history"]["item"] for record in records if record["type"] == "history"]
    return {row["_step"]: row["loss"] for row in rows if "loss" in row}


def in_mlflow(folder: Path, run: Run) -> Losses:
    client = pytest.importorskip("mlflow").MlflowClient(f"sqlite:///{folder / 'mlflow.db'}")
    (found,) = client.search_runs([client.get_experiment_by_name("workbench").experiment_id])
    return {point.step: point.value for point in client.get_metric_history(found.info.run_id, "loss")}


def in_trackio(folder: Path, run: Run) -> Losses:
    from trackio.sqlite_storage import SQLiteStorage

    (name,) = SQLiteStorage.get_runs("workbench")
    return {row["step"]: row["loss"] for row in SQLiteStorage.get_logs("workbench", name) if "loss" in row}


def test_tensorboard_is_live(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboard")
    monkeypatch.setattr(module, "FOLLOW_SECONDS", 0.5)
    follower = threading.Thread(target=send, args=(run, "tensorboard", tmp_path), kwargs={"follow": True})
    follower.start()
    wait_until(lambda: (tmp_path / run.id).is_dir() and len(in_tensorboard(tmp_path, run)) > 5, 120, "a curve")
    assert run.status == "running"
    run.wait(timeout=300)
    follower.join(60)
    assert sorted(in_tensorboard(tmp_path, run)) == run.telemetry().series("loss")[0]


@pytest.mark.parametrize(
    ("tool", "needs", "read"),
    [
        ("csv", "csv", in_csv), ("parquet", "pyarrow", in_parquet), ("tensorboard", "tensorboard", in_tensorboard),
        ("wandb", "wandb", in_wandb), ("mlflow", "mlflow", in_mlflow), ("trackio", "trackio", in_trackio),
    ],
)  # fmt: skip
def test_every_loss_arrives(
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    needs: str,
    read: Callable[[Path, Run], Losses],
) -> None:
    pytest.importorskip(needs)
    keep_trackio_in(tmp_path, monkeypatch)
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    run.wait(timeout=300)
    send(run, tool, tmp_path)
    steps, losses = run.telemetry().series("loss")
    assert len(steps) > 100
    assert read(tmp_path, run) == pytest.approx(dict(zip(steps, losses, strict=True)), rel=1e-6)
