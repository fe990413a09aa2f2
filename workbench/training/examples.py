"""The task of a run that fine-tunes: labelled examples in batches, and scores on others.

``python -m workbench.training.examples RUN_FOLDER`` prints its scores on the test, as JSON.

The run's folder holds the encoder's tokenizer, and in ``initial`` its weights with the vocabulary that they know.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer

from workbench.base.errors import DataError, WorkbenchError
from workbench.choices.architectures.flops import layer_flops
from workbench.choices.data.data import Say
from workbench.choices.data.examples import Examples
from workbench.choices.data.tokens import Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.engine import Engine
from workbench.choices.objectives.fine_tuning import ExampleModel, FineTuning
from workbench.choices.tasks.encoding import Encoded
from workbench.choices.tasks.files import Example
from workbench.choices.tasks.rows import ExampleBatch, drawn, packed
from workbench.recipes.recipe import Recipe
from workbench.store.evaluations import UNITS, Measured
from workbench.store.folder import RunFolder, read_object
from workbench.training.assemble import Assembled, TrainedModel, build_model, build_optimizer
from workbench.training.batches import StepBatch, Steps, StepShape
from workbench.training.checkpoint import CheckpointError
from workbench.training.evaluate import REFERENCE_KEYS, Evaluation
from workbench.training.restored import restore, vocabulary_in

# Shape legend: E examples of a batch, W windows of a split.

FEWEST, DURING = 256, 4
"""Evaluations during training score one example in so many, at least these, of those that settings are chosen on."""
_WINDOWS = 64
"""Windows of a batch that is scored."""


@dataclass
class AssembledExamples(Assembled):
    """A run that fine-tunes, at step 0.

    Attributes:
        train: examples to train on. seed: of their order.
    """

    train: Encoded
    seed: int

    def steps(self, position: Mapping[str, Any] | None = None) -> Steps:
        """See :meth:`Assembled.steps`; the position is the number of examples taken."""
        return ExampleSteps(self.train, self.seed, self.vocabulary.pad, int((position or {}).get("examples", 0)))

    def rehearsal(self, shape: StepShape) -> ExampleBatch:
        """See :meth:`Assembled.rehearsal`; the longest examples."""
        longest = sorted(range(len(self.train)), key=lambda place: -len(self.train.ids[place]))
        return packed(self.train, [longest[n % len(longest)] for n in range(shape.part_rows)], self.vocabulary.pad)

    def flops(self, batch: StepBatch, plans: Sequence[LayerPlan], counts: Mapping[str, int]) -> float:
        """See :meth:`Assembled.flops`; the head's are too few to count."""
        labelled = self.model.choice.labels_in(counts)
        share = 1.0 if self.model.choice.whole else min(1.0, labelled / batch.tokens)  # type: ignore[attr-defined]
        return (
            batch.tokens
            * sum(sum(layer_flops(self.architecture, plan, batch.span, share)) for plan in plans)
            / len(plans)
        )


class ExampleSteps:
    """Batches of examples, epoch after epoch, each in an order of its own.

    Args:
        first: examples taken before.
    """

    def __init__(self, train: Encoded, seed: int, pad: int, first: int = 0) -> None:
        self._train, self._seed, self._pad, self._taken = train, seed, pad, first

    def next(self, tokens: int, shape: StepShape) -> StepBatch:
        """Return the next ``shape.rows`` examples in micro-batches of ``shape.part_rows``."""
        places = drawn(self._seed, self._taken, shape.rows, len(self._train))
        self._taken += shape.rows
        parts = [packed(self._train, places[at : at + shape.part_rows], self._pad)
                 for at in range(0, shape.rows, shape.part_rows)]  # fmt: skip
        lengths = torch.cat([part.lengths_E for part in parts]).double()
        return StepBatch(parts, int(lengths.sum()), float(lengths.square().sum() / lengths.sum()))

    def state(self) -> dict[str, Any]:
        """Return the number of examples taken."""
        return {"examples": self._taken}

    def close(self) -> None:
        """Nothing to let go of."""


class ExampleTask:
    """Labelled examples and the model that learns their labels; see :class:`workbench.training.task.Task`.

    Args:
        recipe: as launched, with data of the kind ``examples``.
    """

    scored, note = True, ""

    def __init__(self, recipe: Recipe) -> None:
        assert isinstance(recipe.data, Examples)
        self._recipe, self._data = recipe, recipe.data
        self.fingerprint: dict[str, Any] = {}

    def prepare(self, folder: RunFolder, resume: bool, say: Say) -> None:
        """See :meth:`workbench.training.task.Task.prepare`; reads and encodes the examples."""
        tokenizer, self._vocabulary = known_tokens(folder)
        splits = self._data.splits()
        self._train, self._dev = (self._encoded(splits[name], tokenizer) for name in ("train", "dev"))
        dev = splits["dev"]
        # Labels of a file may take turns: every fourth example would be of one class.
        some = drawn(0, 0, len(dev) // max(1, min(DURING, len(dev) // FEWEST)), len(dev))
        self._few = self._encoded([dev[place] for place in sorted(some)], tokenizer)
        say(f"{len(splits['train']):,} examples to train on, {len(splits['dev']):,} to choose on, "
            f"{len(splits['test']):,} to test on")  # fmt: skip
        self.fingerprint = {
            **self._data.sources(),
            "vocabulary": self._vocabulary.ids(),
            "tokenizer_sha256": hashlib.sha256(folder.tokenizer.read_bytes()).hexdigest(),
            "train": _described(self._train),
            "heldout": _described(self._dev),
        }

    def assemble(self, engine: Engine) -> AssembledExamples:
        """See :meth:`workbench.training.task.Task.assemble`."""
        recipe = self._recipe
        engine.start()
        model = build_model(recipe, recipe.architecture, self._vocabulary, engine)
        self._assembled = AssembledExamples(
            model=model, vocabulary=self._vocabulary, longest=recipe.data.longest, engine=engine,
            architecture=recipe.architecture, layers=recipe.architecture.layers,
            optimizer=build_optimizer(recipe, model, engine), train=self._train, seed=recipe.seed,
        )  # fmt: skip
        return self._assembled

    def references(self, say: Say) -> dict[str, Any]:
        """Return the kind of the score; baselines of it are scores of their own."""
        return dict.fromkeys(REFERENCE_KEYS) | {"score": {"kind": "examples", "version": 1}}

    def evaluate(self, recipe: Recipe, *, final: bool) -> Evaluation:
        """See :meth:`workbench.training.task.Task.evaluate`; on the examples that settings are chosen on."""
        encoded = self._dev if final else self._few
        nats, found = scores_of(self._assembled, encoded)
        count = len(encoded.examples)
        more = {f"{self._data.task} dev {name}": Measured(value, UNITS[name], count, "higher")
                for name, value in found.items()}  # fmt: skip
        return Evaluation(nats, encoded.tokens, len(encoded), 0, more)

    def _encoded(self, examples: list[Example], tokenizer: Tokenizer) -> Encoded:
        return self._data.encode(examples, tokenizer, self._vocabulary, self._recipe.objective)


def known_tokens(folder: RunFolder) -> tuple[Tokenizer, Vocabulary]:
    """Return tokenizer and vocabulary of the encoder with which a run began.

    Raises:
        DataError: the folder has lost them.
    """
    vocabulary = vocabulary_in(read_object(folder.initial / "origin.json").get("data"))
    if vocabulary is None or not folder.tokenizer.is_file():
        raise DataError(f"'{folder.path}' does not hold the tokenizer of its encoder any more; fine-tune again")
    return Tokenizer.from_str(folder.tokenizer.read_text(encoding="utf-8")), vocabulary


def scores_of(trained: TrainedModel, encoded: Encoded) -> tuple[float, dict[str, float]]:
    """Return the mean loss in nats over W windows, and the scores by name, of a model as it is."""
    model, engine = trained.model, trained.engine
    assert isinstance(model, ExampleModel)
    plan, training = LayerPlan.full(trained.layers), model.training
    # By length: rows of a batch are as long as its longest.
    order = np.argsort([-len(ids) for ids in encoded.ids], kind="stable")
    outputs: list[Any] = [None] * len(encoded)
    total = 0.0
    model.eval()
    try:
        with torch.no_grad(), torch.compiler.set_stance("force_eager"), engine.autocast():
            for at in range(0, len(order), _WINDOWS):
                places = order[at : at + _WINDOWS]
                batch = packed(encoded, places, trained.vocabulary.pad).to(engine.device)
                found = model.outputs(batch, plan)
                total += float(model.choice.nats(found, batch)[0])
                for place, values in zip(places, found.cpu().numpy(), strict=True):
                    outputs[place] = values[: len(encoded.ids[place])] if model.choice.whole else values
    finally:
        model.train(training)
    return total / len(encoded), model.choice.scores(outputs, encoded)


def tested(folder: RunFolder) -> dict[str, Any]:
    """Return the scores of a run's last checkpoint on the test, JSON-able.

    Keys: ``step``, ``tokens`` and ``seconds`` of training; ``scores`` and those of the ``baseline`` by name;
    ``examples``, their number.

    Raises:
        DataError: the examples cannot be read any more. RunError: the run has no checkpoint.
    """
    engine = Recipe.load(folder.recipe).engine().resume(read_object(folder.environment))
    engine.start()
    recipe, trained, saved = restore(folder, None, engine)
    data, objective = recipe.data, recipe.objective
    assert isinstance(data, Examples)
    assert isinstance(objective, FineTuning)
    tokenizer, vocabulary = known_tokens(folder)
    splits = data.splits()
    _, found = scores_of(trained, data.encode(splits["test"], tokenizer, vocabulary, objective))
    return {
        "step": saved.step, "tokens": saved.meta["tokens"], "seconds": saved.meta["seconds"], "scores": found,
        "baseline": objective.baseline(splits["train"], splits["test"]), "examples": len(splits["test"]),
    }  # fmt: skip


def _described(encoded: Encoded) -> dict[str, Any]:
    digest = hashlib.sha256(encoded.targets.tobytes())
    for ids in encoded.ids:
        digest.update(ids.tobytes())
    return {"documents": len(encoded.examples), "tokens": encoded.tokens, "sha256": digest.hexdigest()}


def main(argv: list[str] | None = None) -> int:
    """Test a run that has ended; prints one JSON object, and returns the exit code."""
    parser = argparse.ArgumentParser(prog="workbench.training.examples")
    parser.add_argument("run", type=Path, help="folder of the run")
    try:
        print(json.dumps(tested(RunFolder(parser.parse_args(argv).run.absolute()))))
    except (WorkbenchError, CheckpointError) as error:
        print(json.dumps({"error": str(error)}))
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
