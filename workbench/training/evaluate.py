"""Held-out score: the same tokens, all layers, no dropout, whatever the training does.

``python -m workbench.training.evaluate RUN_FOLDER [--checkpoint N] [--json]`` evaluates a saved run.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from workbench.choices.data.data import Say
from workbench.choices.data.prepare import prepare
from workbench.choices.data.tokens import PreparedData
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.text_floors import text_floors
from workbench.choices.progress import Progress
from workbench.errors import RunError, WorkbenchError
from workbench.floors import SCORE_TITLES, Yardstick
from workbench.recipe import Recipe
from workbench.runs.folder import RunFolder, read_json
from workbench.training import checkpoint
from workbench.training.assemble import Assembled, assemble, micro_batch_size
from workbench.training.forks import check_data
from workbench.training.growth import enter

DURING = 8
"""Evaluations during training score one token in so many of the final evaluation's."""


@dataclass(frozen=True)
class Evaluation:
    """One held-out score.

    Attributes:
        loss: mean nats over the scored tokens.
        tokens: of the held-out set, scored or not.
        scored: tokens scored.
        bytes: UTF-8 bytes of text that the scored tokens stand for.
    """

    loss: float
    tokens: int
    scored: int
    bytes: int

    @property
    def bits_per_byte(self) -> float | None:
        """What the scored tokens cost per byte of their text, comparable between tokenizers; None without bytes."""
        return self.loss * self.scored / (math.log(2) * self.bytes) if self.bytes else None


def evaluate(recipe: Recipe, assembled: Assembled, *, final: bool) -> Evaluation:
    """Held-out score of the model as it is.

    Runs eagerly: the graphs compiled for training would have to be compiled once more without gradients, which costs
    a short run more than it saves.

    Args:
        recipe: for the size of a batch.
        assembled: model and held-out set, which is read in the longest rows of the run, whatever training reads.
        final: the whole set of ``budget.evaluation_tokens``, else one token in :data:`DURING` of it.

    Returns:
        Equal for equal weights and rows, whatever the recipe's seed, objective rate, depth method or batch size (up to
        rounding, as batches are summed).
    """
    heldout = assembled.heldout if final else assembled.heldout.part(DURING)
    # All layers that exist now: a model that grows is evaluated as it is.
    plan = LayerPlan.full(assembled.layers, recipe.architecture.layers)
    training, total = assembled.model.training, torch.zeros((), dtype=torch.float64)
    assembled.model.eval()
    try:
        with torch.no_grad(), torch.compiler.set_stance("force_eager"), assembled.autocast():
            for batch, seen in heldout.batches(assembled.order.sequence_length, micro_batch_size(recipe)):
                seen = seen.to(assembled.device)
                # On the host: the sum must not depend on how many rows went into a batch.
                total += assembled.model.heldout(batch.to(assembled.device), seen, plan).cpu()
    finally:
        assembled.model.train(training)
    scored = len(heldout.scored_S)
    return Evaluation(float(total) / max(1, scored), heldout.tokens, scored, int(heldout.bytes_S.sum()))


def yardstick(recipe: Recipe, prepared: PreparedData, assembled: Assembled, say: Say) -> dict[str, Any]:
    """What held-out and training losses of a run are held against: read back by :class:`workbench.floors.Yardstick`.

    Args:
        recipe: for its objective.
        prepared: the data.
        assembled: for its held-out set.
        say: told when the training text must be counted first.

    Returns:
        JSON-able: ``score``, the floors in nats, ``heldout_overlap``.
    """
    floors = text_floors(prepared, assembled.heldout, say)
    return {
        "score": assembled.heldout.described(),
        "unigram_entropy": floors.unigram,
        "bigram_entropy": floors.neighbours,
        "training_floor": recipe.objective.context_free_loss(prepared.counts_V, prepared.vocabulary),
        "heldout_overlap": prepared.fingerprint["heldout_overlap"],
    }


def alike(score: object, other: dict[str, Any]) -> bool:
    """Whether losses of two scores, as runs store them, may stand on one curve."""
    return isinstance(score, dict) and all(score.get(key) == other[key] for key in ("kind", "version"))


def points_passed(progress: Progress) -> int:
    """How many of the run's evaluations, spread evenly over its budget, are due by now (the final one included)."""
    # The epsilon keeps 3 * (1 / 3) from being counted as not quite due.
    return math.floor(progress.fraction * progress.budget.evaluations + 1e-9)


def saved_checkpoint(folder: RunFolder, step: int | None = None) -> checkpoint.Checkpoint:
    """A checkpoint of a run: that of ``step``, or the newest good one; damaged newer ones are named on stderr.

    Raises:
        RunError: the run has no such checkpoint.
        CheckpointError: the checkpoint is damaged.
    """
    have = checkpoint.checkpoints(folder.checkpoints)
    if not have:
        raise RunError(f"run '{folder.id}' has no checkpoint yet; ask for one with `workbench checkpoint {folder.id}`")
    if step is None:
        saved = checkpoint.load_latest(folder.checkpoints)
        assert saved is not None
        for path, problem in saved.damaged.items():
            _print(f"warning: checkpoint {path.name} is damaged ({problem}); using the older {saved.path.name} instead")
    else:
        path = folder.checkpoints / f"step-{step}"
        if path not in have:
            names = ", ".join(p.name.removeprefix("step-") for p in have)
            raise RunError(f"run '{folder.id}' has no checkpoint of step {step}; it has those of {names}")
        saved = checkpoint.load(path)
    return saved


def restore(folder: RunFolder, step: int | None = None) -> tuple[Recipe, Assembled, checkpoint.Checkpoint]:
    """A saved run's recipe and model, ready to evaluate or export.

    Args:
        folder: of the run.
        step: which checkpoint; None for the newest good one.

    Raises:
        RunError: no such run, or it has no such checkpoint.
        CheckpointError: the checkpoint is damaged.
    """
    recipe, saved = Recipe.load(folder.recipe), saved_checkpoint(folder, step)
    prepared = prepare(recipe.data, say=_print)
    assembled = assemble(recipe, prepared, recipe.execution.resolve_device())
    enter(recipe, assembled, saved.meta.get("growth", {}).get("stage", 0))
    checkpoint.restore_model(assembled.model, saved.tensors["model"], saved.meta["tied"])
    return recipe, assembled, saved


def evaluate_run(folder: RunFolder, step: int | None = None) -> dict[str, Any]:
    """The held-out score of a saved run, JSON-able, with what it is held against and what it says was learned.

    Raises:
        RunError: no such run or checkpoint.
        CheckpointError: the checkpoint is damaged, or the data are no longer those of the run.
    """
    recipe, assembled, saved = restore(folder, step)
    prepared = prepare(recipe.data, say=_print)
    check_data(folder.id, read_json(folder.environment, {}).get("data"), prepared.fingerprint)
    result = evaluate(recipe, assembled, final=True)
    measured_with = yardstick(recipe, prepared, assembled, say=_print)
    return {
        "run": folder.path.name,
        "step": saved.step,
        "heldout_loss": result.loss,
        "bits_per_byte": result.bits_per_byte,
        "learned": Yardstick.of(measured_with, {}, recipe.objective.kind).learned(result.loss),
        **measured_with,
        "evaluated_tokens": result.tokens,
        "scored_positions": result.scored,
    }


def _print(line: str) -> None:
    print(line, file=sys.stderr)


def main(argv: list[str] | None = None) -> int:
    """Evaluate a saved run; returns the exit code."""
    parser = argparse.ArgumentParser(prog="workbench evaluate", description="held-out loss of a saved run")
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("--checkpoint", type=int, metavar="N", help="step of the checkpoint; the newest when left out")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    try:
        answer = evaluate_run(RunFolder(options.run.absolute()), options.checkpoint)
    except (WorkbenchError, checkpoint.CheckpointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(answer))
    else:
        print(
            f"step {answer['step']}: {SCORE_TITLES[answer['score']['kind']]} {answer['heldout_loss']:.4f} nats, "
            f"{answer['bits_per_byte'] or math.nan:.3f} bits per byte; unigram floor {answer['unigram_entropy']:.3f}, "
            f"neighbours' floor {answer['bigram_entropy']:.3f}; learned: {answer['learned']}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
