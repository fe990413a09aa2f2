from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.bridges.conftest import BEGAN, Recorded, inspected, loss_at
from workbench.bridges.bridge import send

pytest.importorskip("wandb")


@pytest.mark.process
def test_wandb_reads_what_two_calls_wrote_as_one_run(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")
    send(recorded, "wandb", tmp_path)
    recorded.steps(16, 20)
    recorded.finish()
    send(recorded, "wandb", tmp_path)
    logs = sorted(tmp_path.glob("wandb/offline-run-*/*.wandb"))
    assert len(logs) == 2
    records = [record for log in logs for record in map(json.loads, inspected(log).splitlines())]
    history = [record["history"]["item"] for record in records if record["type"] == "history"]
    assert [row["_step"] for row in history] == list(range(1, 21))
    assert history[11]["loss"] == pytest.approx(loss_at(12))
    assert history[11]["_timestamp"] == BEGAN + 6.0
    assert history[19]["layer_grad_norm/02"] == 5.0
    (run, again) = [record["run"] for record in records if record["type"] == "run"]
    assert run["run_id"] == again["run_id"] == recorded.folder.id
    assert run["display_name"] == "Tiny <1>"
    summary = json.loads(inspected(logs[-1], "--summary"))
    assert summary["config"]["optimizer"]["lr"] == 0.001
    assert summary["summary"]["score/blimp"] == 0.625
