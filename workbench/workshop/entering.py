"""Enter a run in a task: its rules are checked, its model is scored on the task's text."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from workbench.base.errors import DataError, RunError
from workbench.base.text import share_done
from workbench.choices.data.encoding import write_documents
from workbench.choices.data.prepare import prepared_counts, training_texts
from workbench.choices.data.repeats import RUN_WORDS, Repeats
from workbench.choices.data.store import StoreWriter, open_store
from workbench.choices.objectives.heldout import HeldoutSet
from workbench.client.run import Run
from workbench.client.summary import owner_of
from workbench.launchers.queue.ticket import Needs
from workbench.recipes.recipe import Recipe
from workbench.store.effective_knobs import effective_knobs
from workbench.store.folder import RunFolder, read_object, runs_root
from workbench.store.labels import name_of
from workbench.store.state import ENDED_WELL, actual_status, read_state
from workbench.telemetry.baselines import MOST_OVERLAP
from workbench.training.assemble import TrainedModel
from workbench.training.checkpoint import CheckpointError
from workbench.training.evaluate import evaluate
from workbench.training.restored import restore
from workbench.workshop.task import Entry, Task, documents, entry_of, keep, taken, task_named

MOST_TOKENS = 1 << 18


def enter(
    run: Run | str, task: str, runs_dir: str | Path | None = None, say: Callable[[str], None] = lambda line: None
) -> Entry:
    """Score a run on the text of a task and put it on the leaderboard.

    Args:
        run: that has ended, in the same runs folder. task: its name. say: takes a line on what is done.

    Raises:
        RunError: no such run or task, or a rule of the task is broken; the message says which.
    """
    run = run if isinstance(run, Run) else Run(run, runs_dir)
    root = run.folder.path.parent if runs_dir is None else runs_root(runs_dir)
    held = task_named(root, task)
    recipe = run.recipe
    if (before := entry_of(root, held, recipe.hash)) is not None:
        if before.run == run.id:
            return before
        raise RunError(taken(held, before, recipe.hash))
    used = _used(run.folder, recipe, held)
    texts = documents(root, held)
    say(f"looking for the task's text in what {run.id} was trained on")
    overlap = _overlap(run.folder, recipe, held, texts)
    say("scoring the model on the task's text")
    try:
        _, trained, _ = restore(run.folder)
        heldout = _heldout(run.folder, trained, texts, causal=held.objective == "causal")
        found = evaluate(recipe, trained, heldout)
    except CheckpointError as error:
        raise RunError(f"run '{run.id}' cannot be scored: {error}") from None
    if found.bits_per_byte is None or not math.isfinite(found.loss):
        raise RunError(f"run '{run.id}' has no loss on the text of task '{held.name}': its model holds no numbers")
    entry = Entry(
        run=run.id, name=name_of(run.folder), owner=owner_of(run.folder), recipe_hash=recipe.hash,
        bits_per_byte=found.bits_per_byte, loss=found.loss, scored=found.scored, used=used, overlap=overlap,
        floor=_floor(run.folder, heldout), entered_at=time.time(), recipe=recipe.to_dict(),
    )  # fmt: skip
    keep(root, held, entry)
    return entry


def _used(folder: RunFolder, recipe: Recipe, task: Task) -> float:
    """Return how much of the budget a run has spent.

    Raises:
        RunError: it has not ended, began with the weights of another run, was steered, has another objective, or
            spent more.
    """
    state = read_state(folder)
    status = actual_status(folder, state)
    if status not in ENDED_WELL:
        raise RunError(f"run '{folder.id}' is {status} ({share_done(state.progress)}); enter it when it has finished")
    if folder.origin.exists() or folder.initial.exists():
        raise RunError(f"run '{folder.id}' began with the weights of another run; enter one that began with none")
    if steered := effective_knobs(folder).steered:
        raise RunError(
            f"run '{folder.id}' was steered ({', '.join(steered)}), so that its recipe alone does not lead to its "
            "score; launch a recipe that holds what you turned, and enter that run"
        )
    kind = "causal" if recipe.objective.causal else recipe.objective.kind
    if kind != task.objective:
        raise RunError(
            f"run '{folder.id}' has objective '{kind}', and task '{task.name}' is for '{task.objective}': their losses "
            "cannot be compared"
        )
    needs = Needs.of(folder, recipe.to_dict())
    if task.unit == "seconds" and needs.gpus:
        raise RunError(f"run '{folder.id}' trained on a GPU, and task '{task.name}' counts seconds of CPU cores")
    each = needs.threads if task.unit == "seconds" else 1
    # A budget in seconds ends with the step during which it is spent; what it allows is what counts.
    planned = recipe.budget.amount if recipe.budget.unit == task.unit else math.inf
    used = each * min({"seconds": state.seconds, "steps": state.step, "tokens": state.tokens}[task.unit], planned)
    if used > task.amount:
        more = f" ({state.seconds:.0f} seconds on {each} threads)" if each > 1 else ""
        raise RunError(f"run '{folder.id}' spent {used:.0f}{more}, and task '{task.name}' allows {task.budget}")
    return float(used)


def _overlap(folder: RunFolder, recipe: Recipe, task: Task, texts: list[str]) -> float:
    """Return the share of the task's 13-grams that stand in the training text.

    Raises:
        RunError: they are too many, or the training text is gone.
    """
    repeats = Repeats(texts)
    try:
        for _ in repeats.watch(training_texts(recipe.data)):
            pass
    except (DataError, OSError) as error:
        raise RunError(
            f"the training text of run '{folder.id}' cannot be read, so nobody can tell if it holds the text of task "
            f"'{task.name}': {error}"
        ) from None
    if repeats.share > MOST_OVERLAP:
        raise RunError(
            f"run '{folder.id}' was trained on text of task '{task.name}': {repeats.share:.1%} of its runs of "
            f"{RUN_WORDS} words stand in the training text, and {MOST_OVERLAP:.1%} are allowed; train on other text"
        )
    return repeats.share


def _heldout(folder: RunFolder, trained: TrainedModel, texts: list[str], *, causal: bool) -> HeldoutSet:
    vocabulary = trained.vocabulary
    try:
        tokenizer = Tokenizer.from_file(str(folder.tokenizer))
    # The library raises plain exceptions.
    except Exception as error:
        raise RunError(f"the tokenizer of run '{folder.id}' cannot be read: {error}") from None
    # Text that happens to contain "[MASK]" is text, as in training.
    tokenizer.encode_special_tokens = True
    with tempfile.TemporaryDirectory(prefix="workbench-task-") as aside:
        with StoreWriter(Path(aside), "heldout", vocabulary.size) as writer:
            write_documents(tokenizer, vocabulary, texts, writer, with_bytes=True)
        store = open_store(Path(aside), "heldout", writer.dtype.str, writer.documents, writer.tokens)
        return HeldoutSet.of(store, vocabulary, MOST_TOKENS, causal=causal)


def _floor(folder: RunFolder, heldout: HeldoutSet) -> float | None:
    """Return the bits per byte of the training text's word frequencies; None where they are gone."""
    data = read_object(folder.environment).get("data")
    counts_V = prepared_counts(str(data.get("key"))) if isinstance(data, dict) else None
    if counts_V is None:
        return None
    nats_V = math.log(float(counts_V.sum()) + len(counts_V)) - np.log(counts_V + 1.0)
    nats = float(nats_V[heldout.ids_N[heldout.scored_S]].sum())
    return nats / (math.log(2) * int(heldout.bytes_S.sum()))
