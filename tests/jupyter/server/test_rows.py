"""Rows of a run without a kernel: a step, a text, facts, and what cannot be said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.jupyter.server.conftest import Server
from tests.tiny_runs import tiny_recipe
from workbench.client.launch import launch
from workbench.seen.asked import rows

pytestmark = [pytest.mark.xdist_group("server"), pytest.mark.process]


def test_the_server_says_what_a_run_reads(server: Server, corpus: Path) -> None:
    run = launch(tiny_recipe(corpus, steps=3), on="inline", runs_dir=server.runs)
    run.wait()
    at = f"/runs/here/{run.id}"
    found = server.client.get(f"{at}/rows", step=2, first=1, rows=2)
    here = rows(run, 2, 2, first=1, say=lambda line: None)
    assert found.json == json.loads(json.dumps(here.to_dict()))
    assert server.client.get(f"{at}/find", text="amber birch").json["total"] > 100
    facts = server.client.get(f"{at}/facts").json
    assert facts["steps"] == [0, 3, 3]
    assert sum(number for _, _, number in facts["lengths"]) == facts["train"]["documents"]
    assert facts["tokenizer"]["commonest"][0]["count"] > 0.01 * facts["train"]["tokens"]
    assert "beyond the last, which is 2" in server.client.get(f"{at}/rows", step=9).json["error"]
    assert server.client.get(f"{at}/find", text="x" * 501).status == 400
    assert server.client.get(f"{at}/rows", step=-1).status == 400
    assert server.stranger.get(f"{at}/rows").status == 403
