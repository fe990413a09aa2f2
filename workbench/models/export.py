"""A trained model as a folder for others: ``python -m workbench.models.export RUN_FOLDER TARGET``.

What transformers knows is written as it loads it; every other architecture as a model of ``workbench.transformers``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import secrets
import shutil
import sys
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from workbench.base.errors import RunError, WorkbenchError
from workbench.base.files import usual_permissions
from workbench.base.text import plain
from workbench.choices.architectures.flops import count_parameters
from workbench.choices.architectures.modular import ModularStack
from workbench.choices.data.tokens import Vocabulary
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.objectives.two_networks import Disentangled, TwoNetworksModel
from workbench.models.card import model_card
from workbench.recipes.recipe import Recipe
from workbench.store.effective_knobs import turns_until
from workbench.store.evaluations import read_evaluations
from workbench.store.folder import RunFolder, read_object
from workbench.store.origin import origin_of
from workbench.store.score_table import score_rows
from workbench.training.assemble import TrainedModel
from workbench.training.checkpoint import Checkpoint, CheckpointError
from workbench.training.restored import restore


def export(folder: RunFolder, target: Path, step: int | None = None) -> tuple[str, int]:
    """Write a run's model to a new folder, whole or not at all.

    Args:
        step: which checkpoint; None for the newest good one.

    Returns:
        The class that ``config.json`` names, transformers' own or one of ``workbench.transformers``, and the step.

    Raises:
        RunError: no such run or checkpoint, or the target exists.
        CheckpointError: the checkpoint is damaged.
    """
    if target.exists():
        raise RunError(f"'{target}' exists; name a new folder")
    recipe, run, saved = restore(folder, step)
    # Beside the target, so that the rename at the end stays on one file system; under a name that nobody else has.
    aside = target.with_name(f"{target.name}.{secrets.token_hex(4)}.tmp")
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        # First, since transformers writes the folder itself.
        own_class = _write_model(recipe, run, aside)
        recipe.save(aside / "recipe.json")
        shutil.copyfile(folder.tokenizer, aside / "tokenizer.json")
        tokenizer = run_tokenizer(folder)
        settings = tokenizer_settings(tokenizer, run.vocabulary, recipe.data.longest)
        (aside / "tokenizer_config.json").write_text(json.dumps(settings, indent=2), encoding="utf-8")
        class_name = str(json.loads((aside / "config.json").read_text(encoding="utf-8"))["architectures"][0])
        facts = {"run": folder.id, "step": saved.step, "tokens": int(saved.meta["tokens"]), "layers": run.layers}
        facts["parameters"] = _parameters(run)
        beyond = _beyond_recipe(folder, saved)
        framed = frames_documents(tokenizer, run.vocabulary)
        scores = [row for row in score_rows(folder) if row.step == saved.step]
        card = model_card(recipe, read_evaluations(folder), facts, class_name, own_class, beyond, framed, scores)
        (aside / "README.md").write_text(card, encoding="utf-8")
        usual_permissions(aside)
        aside.rename(target)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return class_name, saved.step


def _write_model(recipe: Recipe, run: TrainedModel, folder: Path) -> bool:
    """Write weights and ``config.json``; returns whether the class is one of ours."""
    if recipe.objective.shifted:
        _read_from_the_left(run)
    backbone, choice = run.model.backbone, run.architecture
    # Of two networks the main one goes out. Heads that score something else than tokens stay behind.
    head = getattr(run.model, "discriminator_head", None)
    if isinstance(run.model, TokenPrediction):
        head = run.model.head
        if choice.save_pretrained(backbone, head, folder, run.vocabulary, run.layers):
            return False
    # Not at the top: transformers takes seconds to import, and the worker imports this package.
    from workbench.transformers import WorkbenchConfig, wrapped

    config = WorkbenchConfig.of(
        choice, run.vocabulary, recipe.data.longest, run.layers, recipe.objective.exports_causal
    )
    wrapped(config, backbone, head).save_pretrained(folder)
    return True


def _read_from_the_left(run: TrainedModel) -> None:
    """Make a model that reads a [MASK] from the place before it one that continues texts.

    Raises:
        RunError: its weights are of a model of both sides alone.
    """
    backbone = run.model.backbone
    if not isinstance(backbone, ModularStack) or (backbone.position_bias and [*backbone.position_bias.parameters()]):
        raise RunError(
            f"objective '{run.model.choice.kind}' reads a [MASK] from the place before it, as no class of "  # type: ignore[attr-defined]
            "transformers does, and this architecture has no causal twin to export; score and use the run itself"
        )
    backbone.causal = True


def _beyond_recipe(folder: RunFolder, saved: Checkpoint) -> dict[str, str]:
    """Return what made the weights of a checkpoint besides the run's recipe."""
    found = {}
    if (origin := origin_of(folder)) is not None:
        found["goes on from"] = f"step {origin.step:,} of run {plain(origin.run)}"
    elif folder.initial.is_dir():
        found["began with"] = f"weights of run {plain(read_object(folder.initial / 'origin.json').get('run'))}"
    if turns := turns_until(folder, saved.step, saved.meta.get("overrides") or {}):
        found["steered"] = ", ".join(plain(turn, 200) for turn in turns)
    return found


def _parameters(run: TrainedModel) -> int:
    """Count the parameters of the layers that exist, tied ones once."""
    absent = sum(p.numel() for block in list(run.model.backbone.blocks)[run.layers :] for p in block.parameters())
    # Of two networks the main one is exported; its vocabulary's table is counted once, whatever it is a sum of.
    extra = count_parameters(run.model.generator) if isinstance(run.model, TwoNetworksModel) else 0
    table = run.model.backbone.embedding
    extra += table.difference.numel() if isinstance(table, Disentangled) else 0
    return count_parameters(run.model) - absent - extra


def run_tokenizer(folder: RunFolder) -> Tokenizer:
    """Return the tokenizer that a run trained with.

    Raises:
        RunError: its file is missing, or is another than the trainer wrote.
    """
    data = read_object(folder.environment).get("data")
    expected = data.get("tokenizer_sha256") if isinstance(data, dict) else None
    try:
        text = folder.tokenizer.read_bytes()
        if expected in (None, hashlib.sha256(text).hexdigest()):
            return Tokenizer.from_str(text.decode())
        problem = "it is another than the run trained with"
    # The library knows no kind of error but this.
    except Exception as error:
        problem = str(error)
    raise RunError(
        f"'{folder.tokenizer}' is damaged: {problem}; bring back a copy of it, or resume the run if it has not "
        "finished: its trainer writes it anew"
    )


def frames_documents(tokenizer: Tokenizer, vocabulary: Vocabulary) -> bool:
    """Return whether the tokenizer itself adds the tokens that every document of the run begins and ends with."""
    text = tokenizer.encode("text", add_special_tokens=False).ids
    return bool(tokenizer.encode("text").ids == [vocabulary.cls, *text, vocabulary.sep])


def tokenizer_settings(tokenizer: Tokenizer, vocabulary: Vocabulary, length: int) -> dict[str, Any]:
    """Return ``tokenizer_config.json`` for transformers' fast tokenizer: which tokens are special,
    how long a row may be.
    """
    special = {name: getattr(vocabulary, name) for name in ("cls", "sep", "mask", "pad", "unk")}
    # As the model's config says; programs that score models begin a text with the first.
    special |= {"bos": vocabulary.cls, "eos": vocabulary.sep}
    names = {f"{name}_token": tokenizer.id_to_token(number) for name, number in special.items()}
    # No token types: documents are one segment, and most models take none.
    inputs = ["input_ids", "attention_mask"]
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": length,
        "model_input_names": inputs,
        **names,
    }


def main(argv: list[str] | None = None) -> int:
    """Export a run; returns the exit code."""
    parser = argparse.ArgumentParser(prog="workbench export", description="write a trained model as a folder")
    parser.add_argument("run", type=Path, help="folder of the run")
    parser.add_argument("target", type=Path, help="a new folder")
    parser.add_argument("--checkpoint", type=int, metavar="N", help="step of the checkpoint; the newest when left out")
    options = parser.parse_args(argv)
    try:
        class_name, step = export(RunFolder(options.run.absolute()), options.target.absolute(), options.checkpoint)
    except (WorkbenchError, CheckpointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: '{options.target}' cannot be written: {error}; name another folder", file=sys.stderr)
        return 2
    print(f"{options.target}: {class_name} of step {step}, tokenizer, recipe and card")
    return 0


if __name__ == "__main__":
    sys.exit(main())
