"""Held-out score: the same tokens, all layers, no dropout, whatever the training does.

``python -m workbench.training.evaluate RUN_FOLDER [--checkpoint N] [--json]`` evaluates a saved run.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from workbench.base.errors import DataError, RunError, WorkbenchError
from workbench.choices.data.data import Say
from workbench.choices.data.examples import Examples
from workbench.choices.data.prepare import prepare
from workbench.choices.data.tokens import PreparedData, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.heldout import HeldoutSet
from workbench.choices.objectives.text_baselines import text_baselines, with_windows
from workbench.choices.progress import Progress
from workbench.recipes.recipe import Recipe
from workbench.store.evaluations import (
    BITS_PER_BYTE,
    HELDOUT_LOSS,
    LABELS,
    LAST_WEIGHTS_LOSS,
    PART_LOSS,
    SEEN_LOSS,
    UNSEEN_LOSS,
    Measured,
)
from workbench.store.folder import RunFolder, read_object
from workbench.telemetry.baselines import SCORE_TITLES, References, learned_briefly
from workbench.telemetry.streams import number
from workbench.training.assemble import TrainedModel, heldout_set
from workbench.training.averaging import averaged
from workbench.training.checkpoint import CheckpointError
from workbench.training.forks import check_data
from workbench.training.restored import restore, say

REFERENCE_KEYS = ("score", "unigram_entropy", "bigram_entropy", "training_floor", "heldout_overlap")
"""Names in ``environment.json`` and ``evaluations.json`` of what a run's losses are held against."""
DURING = 8
"""Evaluations during training score one token in so many of the final evaluation's, all of a small set."""


@dataclass(frozen=True)
class Evaluation:
    """One held-out score.

    Attributes:
        loss: mean nats over the scored tokens.
        tokens: of the held-out set, scored or not.
        scored: tokens scored.
        bytes: UTF-8 bytes of text that the scored tokens stand for.
        second: further scores by name: an objective's second one, those of a task; empty where it has none.
        last: mean nats of the last weights, where it is averaged ones that were scored; else None.
        windows: loss and number of the scored tokens whose window of three stands in the training text, then of the
            others; None where nobody has looked.
    """

    loss: float
    tokens: int
    scored: int
    bytes: int
    second: Mapping[str, Measured] = field(default_factory=dict)
    windows: tuple[tuple[float | None, int], tuple[float | None, int]] | None = None
    last: float | None = None

    @property
    def bits_per_byte(self) -> float | None:
        """Bits that the scored tokens cost per byte of text, comparable between tokenizers; None without bytes."""
        return self.loss * self.scored / (math.log(2) * self.bytes) if self.bytes else None

    @property
    def words(self) -> str:
        """The score in a line, with the weights that were scored where there are several."""
        text = f"held-out loss {self.loss:.4f} nats over {self.tokens:,} tokens"
        return text if self.last is None else f"{text}, of the averaged weights; {self.last:.4f} of the last ones"

    @property
    def scores(self) -> dict[str, Measured]:
        """Scores by name, as ``evaluations.json`` holds them."""
        found = {HELDOUT_LOSS: Measured(self.loss, "nats", self.scored)}
        if (bits := self.bits_per_byte) is not None:
            found[BITS_PER_BYTE] = Measured(bits, "bits per byte", self.scored)
        for name, (loss, count) in zip((SEEN_LOSS, UNSEEN_LOSS), self.windows or (), strict=False):
            found[name] = Measured(loss, "nats", count)
        if self.last is not None:
            found[LAST_WEIGHTS_LOSS] = Measured(self.last, "nats", self.scored)
        return {**found, **self.second}


def evaluate(recipe: Recipe, trained: TrainedModel, heldout: HeldoutSet) -> Evaluation:
    """Return held-out score of the model as it is.

    Runs eagerly: the graphs compiled for training would have to be compiled once more without gradients, which costs
    a short run more than it saves.

    Args:
        heldout: the set, or a part of it; read in the longest rows of the run, whatever training reads.

    Returns:
        Equal for equal weights and rows, whatever the recipe's seed, objective rate, depth method or batch size (up to
        rounding, as batches are summed).
    """
    # All layers that exist now: a model that grows is evaluated as it is.
    plan = LayerPlan.full(trained.layers, recipe.architecture.layers)
    engine, training, nats = trained.engine, trained.model.training, [torch.zeros(0)]
    shares: dict[str, tuple[float, float]] = {}
    trained.model.eval()
    try:
        with torch.no_grad(), torch.compiler.set_stance("force_eager"), engine.autocast():
            for batch, seen in heldout.batches(trained.longest, engine.rows, shifted=recipe.objective.shifted):
                seen, batch = seen.to(engine.device), batch.to(engine.device)
                nats.append(trained.model.heldout(batch, seen, plan).cpu())
                for name, pair in trained.model.shares(batch, seen, plan).items():
                    before = shares.get(name, (0.0, 0.0))
                    shares[name] = (before[0] + float(pair[0]), before[1] + float(pair[1]))
            second = _second_score(recipe.objective.second_score, trained, plan, heldout)
    finally:
        trained.model.train(training)
    # In one sum, which does not depend on how many rows went into a batch, and in float64: the sum of a million nats in
    # float32 loses the digits in which two evaluations differ.
    nats_S = torch.cat(nats).double().numpy()
    scored, seen_S = len(heldout.scored_S), heldout.seen_S
    assert len(nats_S) == scored, "each scored token stands in one row"
    windows = None if seen_S is None else (_mean(nats_S[seen_S]), _mean(nats_S[~seen_S]))
    second |= {f"{PART_LOSS}{name}": Measured(*_nats(nats_S[part_S])) for name, part_S in heldout.parts.items()}
    for name, (part, of) in shares.items():
        # Of a loss, which is a sum of nats, a mean.
        loss, value = name.endswith("_loss"), part / max(1.0, of)
        second[name] = Measured(value, "nats", int(of)) if loss else Measured(value, "share", int(of), "higher")
    return Evaluation(_mean(nats_S)[0] or 0.0, heldout.tokens, scored, int(heldout.bytes_S.sum()), second, windows)


def evaluated(
    score: Callable[[], Evaluation], average: Mapping[str, torch.Tensor], model: torch.nn.Module
) -> Evaluation:
    """Return the held-out score; of the averaged weights where there are any, with the loss of the last ones beside it.

    Args:
        score: of the model as it is. average: by name, any shapes.
    """
    last = score()
    if not average:
        return last
    with averaged(average, model):
        result = score()
    return replace(result, last=last.loss)


def _mean(nats: np.ndarray) -> tuple[float | None, int]:
    """Return mean and number; None for no token."""
    return (float(nats.mean()) if len(nats) else None), len(nats)


def _nats(nats: np.ndarray) -> tuple[float | None, str, int]:
    mean, count = _mean(nats)
    return mean, "nats", count


def _second_score(name: str, trained: TrainedModel, plan: LayerPlan, heldout: HeldoutSet) -> dict[str, Measured]:
    """Return the objective's second score, over every token of the set but the first of documents;
    none without a name.
    """
    if not name:
        return {}
    tokens, total, device = heldout.next_tokens(), 0.0, trained.engine.device
    for batch, seen in tokens.batches(trained.longest, trained.engine.rows):
        total += float(trained.model.second(batch.to(device), seen.to(device), plan).double().sum())
    scored = len(tokens.scored_S)
    return {name: Measured(total / max(1, scored), "nats", scored)}


def references(recipe: Recipe, prepared: PreparedData, heldout: HeldoutSet, say: Say) -> dict[str, Any]:
    """Return the baselines of a run's held-out and training losses, which are read back by
    :class:`workbench.telemetry.baselines.References`.

    Args:
        say: gets a line if the training text must be counted first.

    Returns:
        JSON-able, by :data:`REFERENCE_KEYS`: ``score``, the baselines in nats, ``heldout_overlap``.
    """
    baselines = text_baselines(prepared, heldout, say)
    training_baseline = recipe.objective.context_free_loss(prepared.counts_V, prepared.vocabulary)
    overlap = prepared.fingerprint["heldout_overlap"]
    values = (heldout.described(), baselines.unigram, baselines.neighbours, training_baseline, overlap)
    return dict(zip(REFERENCE_KEYS, values, strict=True))


def alike(score: object, other: dict[str, Any]) -> bool:
    """Return True if losses of two scores, as runs store them, may stand on one curve."""
    return isinstance(score, dict) and all(score.get(key) == other[key] for key in ("kind", "version"))


def points_until(records: object, step: int) -> list[dict[str, Any]]:
    """Return the points of a run's evaluations up to a step; damaged ones are left out."""
    points = [each for each in records if isinstance(each, dict)] if isinstance(records, list) else []
    # No comparison with NaN holds.
    return [point for point in points if number(point.get("step")) <= step]


def points_passed(progress: Progress) -> int:
    """Count the run's evaluations, spread evenly over its budget, that are due by now (the final one included)."""
    # The epsilon keeps 3 * (1 / 3) from being counted as not quite due.
    return math.floor(progress.fraction * progress.budget.evaluations + 1e-9)


def evaluate_run(folder: RunFolder, step: int | None = None) -> dict[str, Any]:
    """Return the held-out score of a saved run, JSON-able, with what it is held against and what it says was learned.

    Raises:
        RunError: no such run or checkpoint, or the run fine-tunes.
        CheckpointError: the checkpoint is damaged, or the data are no longer those of the run.
        DataError: the run did not keep its held-out set, and the data cannot be prepared again.
    """
    engine = Recipe.load(folder.recipe).engine().resume(read_object(folder.environment))
    recipe, trained, saved = restore(folder, step, engine)
    if isinstance(recipe.data, Examples):
        told = "`workbench finetune` lists fine-tunings with their scores"
        raise RunError(f"run '{folder.path.name}' is a fine-tuning and has no held-out text; {told}")
    heldout, measured_with = _scored_with(folder, recipe, trained.vocabulary)
    result = evaluate(recipe, trained, heldout)
    return {
        "run": folder.path.name,
        "step": saved.step,
        "heldout_loss": result.loss,
        "weights": "averaged" if "average" in saved.tensors else "last",
        "bits_per_byte": result.bits_per_byte,
        "scores": {name: asdict(score) for name, score in result.scores.items()},
        "learned": References.of(measured_with, {}, causal=recipe.objective.causal).learned(result.loss),
        **measured_with,
        "evaluated_tokens": result.tokens,
        "scored_positions": result.scored,
    }


def _scored_with(folder: RunFolder, recipe: Recipe, vocabulary: Vocabulary) -> tuple[HeldoutSet, dict[str, Any]]:
    """Return a run's held-out set and its :func:`references`: as kept in its folder, else from the data, aloud."""
    environment = read_object(folder.environment)
    kept = {key: environment.get(key) for key in REFERENCE_KEYS}
    try:
        heldout = HeldoutSet.load(folder.heldout, vocabulary)
        if heldout.described() == kept["score"]:
            return heldout, kept
        problem = f"'{folder.heldout}' is of another score than '{folder.environment.name}' names"
    except DataError as error:
        problem = str(error)
    say(f"{problem}; preparing the data of the run again")
    prepared = prepare(recipe.data, say)
    check_data(folder.id, environment.get("data"), prepared.fingerprint)
    heldout = with_windows(prepared, heldout_set(recipe, prepared), say)
    return heldout, references(recipe, prepared, heldout, say)


def main(argv: list[str] | None = None) -> int:
    """Evaluate a saved run; returns the exit code."""
    parser = argparse.ArgumentParser(prog="workbench evaluate", description="held-out loss of a saved run")
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("--checkpoint", type=int, metavar="N", help="step of the checkpoint; the newest when left out")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(argv)
    try:
        answer = evaluate_run(RunFolder(options.run.absolute()), options.checkpoint)
    except (WorkbenchError, CheckpointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(answer))
    else:
        print(
            f"step {answer['step']}: {SCORE_TITLES[answer['score']['kind']]} {answer['heldout_loss']:.4f} nats, "
            f"{answer['bits_per_byte'] or math.nan:.3f} bits per byte; unigram {answer['unigram_entropy']:.3f}, "
            f"neighbours {answer['bigram_entropy']:.3f}; {learned_briefly(answer['learned'])}"
            f"{_windows_in_words(answer)}{'; of the averaged weights' * (answer['weights'] == 'averaged')}"
        )
    return 0


def _windows_in_words(answer: dict[str, Any]) -> str:
    """Return both losses of windows with their numbers of tokens; empty where nobody has looked."""
    found = [(answer["scores"].get(name), LABELS[name]) for name in (SEEN_LOSS, UNSEEN_LOSS)]
    return "".join(
        f"; {label} {math.nan if score['value'] is None else score['value']:.4f} over {score['count']:,}"
        for score, label in found
        if score is not None
    )


if __name__ == "__main__":
    sys.exit(main())
