"""The peer's data and its stops between rounds, without a training run (that one is in test_peers)."""

from __future__ import annotations

import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from workbench.bench.contender import Stage
from workbench.choices.data.order import RowOrder
from workbench.choices.data.tokens import TokenStore

pytest.importorskip("transformers", reason="needs the package transformers")
from workbench.bench.peer_transformers import Rounds, Rows


def test_the_peer_reads_our_rows_and_starts_over() -> None:
    order = RowOrder(TokenStore(np.arange(64, dtype=np.uint16), np.arange(0, 65, 8)), 16, seed=0)
    rows = Rows(order, 1000)
    assert len(rows) == 1000
    ours = order.batch(np.arange(4)).tokens_BT
    assert torch.equal(torch.stack([rows[index]["input_ids"] for index in range(4)]), ours)
    assert torch.equal(rows[4]["input_ids"], ours[0]), "one epoch, again and again"


def test_rounds_stop_the_loop_and_time_only_their_own_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"steps": 3}\n{"steps": 1}\n'))
    monkeypatch.setattr(sys, "stdout", out)
    rounds = Rounds(Stage(), warmup=2, tokens_per_step=10, ready={"parameters": 7})
    control, taken = SimpleNamespace(should_training_stop=False), 0
    while not control.should_training_stop:
        taken += 1
        rounds.on_step_end(None, None, control)
    said = [json.loads(line) for line in out.getvalue().splitlines()]
    assert taken == 2 + 3 + 1
    assert said[0]["ready"]["parameters"] == 7
    assert [answer["tokens"] for answer in said[1:]] == [30, 10]
    assert all(answer["seconds"] >= 0 for answer in said[1:])
