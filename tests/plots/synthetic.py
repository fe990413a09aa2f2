"""Run folders written with the real telemetry writer, so that every plot reads what a trainer would have left."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from workbench.store.folder import RunFolder, write_json
from workbench.store.state import write_state
from workbench.store.view import RunView
from workbench.telemetry.streams import TelemetryWriter

ENTROPY, NEIGHBOURS, TRAINING_BASELINE = 6.2, 4.1, 5.7
BASELINES = {
    "unigram_entropy": ENTROPY, "bigram_entropy": NEIGHBOURS, "training_floor": TRAINING_BASELINE,
    "score": {"kind": "masked-only", "version": 2, "positions": 4096, "tokens": 32768, "bytes": 15000},
}  # fmt: skip


def folder_of(root: Path, run_id: str, name: str, status: str = "finished", **state: Any) -> RunFolder:
    """An empty run: what exists right after a launch."""
    folder = RunFolder(root / run_id)
    folder.path.mkdir(parents=True)
    recipe = {
        "name": name,
        "seed": 0,
        "objective": {"kind": "masked"},
        "optimizer": {"kind": "adamw", "lr": 3e-3},
        "budget": {"amount": 200, "unit": "steps"},
    }
    # Escaped, so that a name may hold what UTF-8 cannot.
    folder.recipe.write_text(json.dumps(recipe))
    write_state(folder, status=status, **state)
    return folder


def trained(
    root: Path,
    run_id: str = "20250101-000000-synthetic-abcdef-0001",
    name: str = "synthetic",
    *,
    steps: int = 200,
    layers: int = 6,
    final_loss: float = 4.0,
    tokens_per_second: float = 8000.0,
    stages: bool = True,
    status: str = "finished",
) -> RunView:
    """A run that trained: loss falls from 9 nats to ``final_loss``, layers grow, drop and freeze, one knob moves."""
    folder = folder_of(root, run_id, name, status, step=steps, device="CPU, 2 cores")
    rng = np.random.default_rng(0)
    tokens_per_step = 4096
    writer = TelemetryWriter(folder.telemetry)
    heldout = []
    writer.event(0, "start", "started")
    for step in range(1, steps + 1):
        share = step / steps
        loss = final_loss + (9 - final_loss) * math.exp(-5 * share)
        seconds, tokens = step * tokens_per_step / tokens_per_second, step * tokens_per_step
        writer.scalars(
            step, seconds, tokens, loss=loss + 0.1 * rng.standard_normal(), lr=3e-3 * min(1, step / 20) * (1 - share),
            weight_decay=0.01, tokens_per_second=tokens_per_second * (1 + 0.05 * rng.standard_normal()), mfu=0.31,
            memory_gib=1.2, step_ms=100.0, data_ms=2.0, forward_ms=30.0, backward_ms=55.0, optimizer_ms=8.0,
            layers_run=layers - 0.5, **{"depth.theta": 1 - 0.5 * share},
        )  # fmt: skip
        if step % 5 == 0:
            writer.layers(step, **_layers(layers, share, rng, stages))
        if step % (steps // 4) == 0:
            heldout.append(
                {"step": step, "tokens": tokens, "seconds": seconds, "loss": loss, "bits_per_byte": loss / 3}
            )
            writer.event(step, "evaluation", f"held-out loss {loss:.3f}")
    half = layers // 2
    writer.event(
        steps // 2, "stage", f"stage 2 of 2: layers {half + 1}-{layers} added as copies of 1-{half}",
        stage=2, stages=2, layers=layers, frozen=[], copies=[[half + i, i] for i in range(1, half + 1)],
    )  # fmt: skip
    writer.event(steps // 2 + 10, "knob", "optimizer.lr 0.003 -> 0.002", path="optimizer.lr", value=0.002)
    writer.close()
    result = {
        "steps": steps, "tokens": steps * tokens_per_step, "seconds": steps * tokens_per_step / tokens_per_second,
        "tokens_per_second": tokens_per_second, "train_loss": final_loss, "heldout_loss": heldout[-1]["loss"],
        "bits_per_byte": heldout[-1]["loss"] / 3, "learned": "context", "mfu": 0.31, "parameters": 4_200_000,
        "useful_flops": 1e13, "stopped_early": False,
    }  # fmt: skip
    write_json(folder.evaluations, {**BASELINES, "heldout": heldout, "result": result})
    write_json(
        folder.environment,
        {
            "python": "3.12.1", "packages": {"torch": "2.13.0", "numpy": "2.4.6"}, "git": "abc1234", "host": "here",
            "device": "CPU, 2 cores", "cores": 2, "threads": 1, "gemm_flops": 3.1e11, "peak_flops": None,
            "data": {"documents": 10, "sources": {"numpy": "2.4.6"}}, "attention": "plain", "parameters": 4_200_000,
            "compile_seconds": 3.5, **BASELINES,
        },
    )  # fmt: skip
    return RunView.read(folder)


def as_before(view: RunView) -> RunView:
    """The same run as a trainer of before the held-out score had a name left it."""
    old = {"unigram_entropy": ENTROPY}
    return replace(
        view,
        evaluations={key: value for key, value in view.evaluations.items() if key not in BASELINES} | old,
        environment={key: value for key, value in view.environment.items() if key not in BASELINES} | old,
    )


def _layers(layers: int, share: float, rng: np.random.Generator, stages: bool) -> dict[str, list[float | int | None]]:
    grown = layers if share > 0.5 or not stages else layers // 2
    frozen = 1 if share > 0.75 and stages else 0
    state: list[float | int | None] = [
        3 if layer >= grown else 2 if layer < frozen else int(rng.random() < 0.3) for layer in range(layers)
    ]
    if stages and share > 0.5:
        state[layers // 2 :] = [5 if code == 0 else code for code in state[layers // 2 :]]
    exists = [code != 3 for code in state]
    return {
        "state": state,
        "ran": [float(rng.random()) if there else None for there in exists],
        "keep": [0.7 if there else None for there in exists],
        "grad_norm": [float(10 ** rng.normal(-2, 0.5)) if there else None for there in exists],
        "activation_rms": [1.0 + layer if there else None for layer, there in enumerate(exists)],
    }
