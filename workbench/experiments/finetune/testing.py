"""The test of a fine-tuning: once, when the rates are chosen; its scores go to the runs and to the encoder's run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from statistics import fmean, stdev
from typing import Any

from workbench.experiments.finetune.finetuning_plan import FinetuningPlan, Job
from workbench.experiments.finetune.finetuning_status import FinetuningStatus
from workbench.launchers.processes import child_environment, module_command
from workbench.store.checkpoints import state_of
from workbench.store.evaluations import UNITS, Measured, add_scores
from workbench.store.folder import RunFolder

BASELINES = {"classes": "majority", "numbers": "mean", "answers": "overlapping sentence"}
"""Answers without a model, by the form of the labels."""


def test(plan: FinetuningPlan, now: FinetuningStatus) -> dict[str, Any]:
    """Score the chosen runs on the test and keep the scores; returns all of them, JSON-able.

    Keys: ``scores`` by start (``trained``, ``untrained``) and name, a list with one per seed; ``baseline`` by name and
    ``baseline_kind``; ``examples``; ``error`` where a run could not be tested.
    """
    kind = BASELINES[plan.recipes["trained"]["data"]["form"]]
    found: dict[str, list[dict[str, float]]] = {start: [] for start in now.chosen}
    said: dict[str, Any] = {}
    for start, rate in now.chosen.items():
        for seed in plan.seeds:
            folder = plan.run_folder(Job(start, rate, seed))
            said = tested(folder)
            if "error" in said:
                return said
            found[start].append(said["scores"])
            scores = named(plan.task, said["scores"], said["examples"], {kind: said["baseline"]})
            add_scores(folder, said["step"], said["tokens"], said["seconds"], scores)
    by_name = {start: {name: [each[name] for each in of] for name in of[0]} for start, of in found.items()}
    result = {"scores": by_name, "baseline": said["baseline"], "baseline_kind": kind, "examples": said["examples"]}
    if plan.encoder.run is not None and plan.encoder.checkpoint.is_dir() and "trained" in by_name:
        of_encoder(plan, plan.encoder.run, result)
    return result


def tested(folder: RunFolder) -> dict[str, Any]:
    """Score one run in a process of its own; see :func:`workbench.training.examples.tested`, or ``error``."""
    command = module_command("workbench.training.examples", str(folder.path))
    ended = subprocess.run(command, capture_output=True, text=True, env=child_environment(), check=False)
    try:
        return dict(json.loads(ended.stdout))
    except ValueError:
        return {"error": f"run '{folder.id}' could not be tested: {ended.stderr.strip()[-1000:]}"}


def of_encoder(plan: FinetuningPlan, folder: RunFolder, result: Mapping[str, Any]) -> None:
    """Keep the means over seeds in the run of the encoder, beside those of twin and baseline."""
    means = {start: {name: fmean(values) for name, values in of.items()} for start, of in result["scores"].items()}
    trained = means.pop("trained")
    scores = named(plan.task, trained, result["examples"], {**means, result["baseline_kind"]: result["baseline"]})
    saved = state_of(plan.encoder.checkpoint)
    add_scores(folder, int(saved["step"]), int(saved["tokens"]), float(saved["seconds"]), scores)


def named(
    task: str, scores: Mapping[str, float], count: int, others: Mapping[str, Mapping[str, float]]
) -> dict[str, Measured]:
    """Return scores as a run keeps them, ``boolq accuracy``.

    Args:
        count: examples. others: what they are held against, each with the same scores.
    """
    return {
        f"{task} {name}": Measured(
            value, UNITS[name], count, "higher", {other: found[name] for other, found in others.items()}
        )
        for name, value in scores.items()
    }


def in_words(values: list[float]) -> str:
    """Return a score with its spread over seeds.

    Example:
        >>> in_words([0.75]), in_words([0.7, 0.8])
        ('0.7500', '0.7500 (± 0.0707 over 2 seeds)')
    """
    return f"{fmean(values):.4f}" + (f" (± {stdev(values):.4f} over {len(values)} seeds)" if len(values) > 1 else "")
