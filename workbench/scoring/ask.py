"""Try a model: the likeliest words behind a [MASK], and the continuation of a prompt, at any checkpoint of a run.

``python -m workbench.scoring.ask`` answers questions as JSON lines on stdin until it ends, so that a notebook's kernel
loads no torch and each model is loaded once.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from workbench.base.errors import RunError, WorkbenchError, typed_line
from workbench.models.export import run_tokenizer
from workbench.recipes.recipe import Recipe
from workbench.scoring.reader import Ids, Reader
from workbench.seen.answers import facts_of, found_in, prepared, rows_of
from workbench.store.checkpoints import checkpoints, step_of
from workbench.store.folder import RunFolder
from workbench.training.checkpoint import CheckpointError
from workbench.training.restored import restore

# Shape legend: R places that are hidden, V vocabulary rows.

MOST_MODELS = 4
"""Models that stay loaded; the one that was asked longest ago goes first."""
_MASK = "[MASK]"


class Models:
    """Checkpoints of runs, each loaded once, on the CPU and in float32: a run that trains keeps its device."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[Path, int], tuple[Recipe, Reader]] = {}

    def at(self, folder: RunFolder, step: int | None = None) -> tuple[int, Recipe, Reader]:
        """Return a checkpoint's step, recipe and model.

        Args:
            step: of the checkpoint; None for the newest, also while the run trains.

        Raises:
            RunError: no such checkpoint. CheckpointError: it is damaged.
        """
        if step is None and (have := checkpoints(folder.checkpoints)):
            newest = (folder.path, step_of(have[-1]))
            step = newest[1] if newest in self._loaded else None
        found = self._loaded.pop((folder.path, step), None) if step is not None else None
        if found is None:
            recipe, trained, saved = restore(folder, step)
            step = saved.step
            found = recipe, Reader(trained, run_tokenizer(folder), recipe.architecture.layers)
        assert step is not None
        self._loaded[folder.path, step] = found
        while len(self._loaded) > MOST_MODELS:
            self._loaded.pop(next(iter(self._loaded)))
        return step, *found


def fill(models: Models, folder: RunFolder, text: str, step: int | None = None, top: int = 5) -> dict[str, Any]:
    """Return the likeliest words at the [MASK] of a text.

    Args:
        text: with one ``[MASK]``. top: number of words.

    Returns:
        ``run``, ``step``, ``text``, and ``words``: ``[[word, probability]]``, the likeliest first.

    Raises:
        RunError: no or several ``[MASK]``, a text longer than the row, or a model that reads from the left alone.
    """
    if text.count(_MASK) != 1:
        raise RunError(f"the text has {text.count(_MASK) or 'no'} {_MASK}: write one where a word is wanted, as in "
                       f"'The {_MASK} sat.'")  # fmt: skip
    if top < 1:
        raise RunError(f"top {top} asks for no word; give 1 or more")
    step, recipe, reader = models.at(folder, step)
    if recipe.objective.causal:
        raise RunError(f"objective '{recipe.objective.kind}' reads a text from the left alone: let the model continue "
                       f"one, `workbench generate {folder.id} ...`")  # fmt: skip
    left, right = text.split(_MASK)
    vocabulary = reader.vocabulary
    # The space before a word belongs to its token where spaces belong to tokens at all.
    before = (vocabulary.cls, *reader.ids(left.rstrip()))
    row = (*before, vocabulary.mask, *reader.ids(right), vocabulary.sep)
    _check_fits(reader, len(row), "the text")
    chances_V = reader.logits([row], [len(before)])[0].softmax(-1)
    chances_V[~_ordinary(reader)] = 0
    best = chances_V.topk(min(top, int(_ordinary(reader).sum())))
    words = [[reader.tokenizer.decode([token]).strip(), chance]
             for token, chance in zip(best.indices.tolist(), best.values.tolist(), strict=True)]  # fmt: skip
    return {"run": folder.id, "step": step, "text": text, "words": words}


def generate(
    models: Models,
    folder: RunFolder,
    prompt: str,
    tokens: int = 40,
    temperature: float = 0.8,
    top_k: int = 40,
    seed: int = 0,
    step: int | None = None,
) -> dict[str, Any]:
    """Continue a prompt, token by token or, where the objective does so, by unmasking the surest place first.

    Args:
        tokens: at most so many; fewer where the model ends the document.
        temperature: 0 takes the likeliest token; 1 draws as the model says.
        top_k: draw among so many; 0 for all.

    Returns:
        ``run``, ``step``, ``prompt``, ``text`` (the continuation), ``tokens``, and of an unmasked text ``steps``: how
        it looked after each token.

    Raises:
        RunError: a prompt longer than the row, a knob out of bounds, or an objective that continues no text.
    """
    if tokens < 1 or temperature < 0 or top_k < 0 or not 0 <= seed < 2**63:
        raise RunError(f"tokens {tokens}, temperature {temperature:g}, top_k {top_k}, seed {seed}: give at least 1 "
                       "token, and no negative number")  # fmt: skip
    step, recipe, reader = models.at(folder, step)
    if recipe.objective.generates is None:
        raise RunError(f"objective '{recipe.objective.kind}' continues no text: it fills a {_MASK}, "
                       f"`workbench fill {folder.id} ...`")  # fmt: skip
    ids = reader.ids(prompt)
    _check_fits(reader, len(ids) + 1, "the prompt")
    generator = torch.Generator().manual_seed(seed)

    def draw(logits_RV: Tensor) -> Tensor:
        return drawn(logits_RV, temperature, top_k, generator)

    steps: list[str] = []
    if recipe.objective.generates == "next":
        found = _continued(reader, ids, tokens, draw)
    else:
        found, steps = _unmasked(reader, ids, tokens, draw)
    text = _after(reader, ids, found)
    return {"run": folder.id, "step": step, "prompt": prompt, "text": text, "tokens": len(found), "steps": steps}


def drawn(logits_RV: Tensor, temperature: float, top_k: int, generator: torch.Generator) -> Tensor:
    """Draw a token for each row of logits (R, V); shape (R,)."""
    if temperature == 0:
        return logits_RV.argmax(-1)
    if 0 < top_k < logits_RV.shape[-1]:
        least_R1 = logits_RV.topk(top_k).values[:, -1:]
        logits_RV = logits_RV.masked_fill(logits_RV < least_R1, -torch.inf)
    return torch.multinomial((logits_RV / temperature).softmax(-1), 1, generator=generator)[:, 0]


def _continued(reader: Reader, ids: Ids, tokens: int, draw: Callable[[Tensor], Tensor]) -> Ids:
    allowed_V = _ordinary(reader)
    # The end of a document is a word of causal models.
    allowed_V[reader.vocabulary.sep] = True
    row: Ids = (reader.vocabulary.cls, *ids)
    found: Ids = ()
    while len(found) < tokens:
        # As training's rows, which cut documents: the newest tokens stay.
        shown = (*row, *found)[-reader.longest :]
        logits_1V = reader.logits([shown], [len(shown) - 1], causal=True).masked_fill(~allowed_V, -torch.inf)
        token = int(draw(logits_1V))
        if token == reader.vocabulary.sep:
            break
        found = (*found, token)
    return found


def _unmasked(reader: Reader, ids: Ids, tokens: int, draw: Callable[[Tensor], Tensor]) -> tuple[Ids, list[str]]:
    """Fill a row of [MASK] behind a prompt, at each step the place whose draw is likeliest."""
    vocabulary, begin = reader.vocabulary, 1 + len(ids)
    row = [vocabulary.cls, *ids, *[vocabulary.mask] * tokens, vocabulary.sep]
    _check_fits(reader, len(row), "the prompt with its continuation")
    hidden, steps, allowed_V = list(range(begin, begin + tokens)), [], _ordinary(reader)
    while hidden:
        logits_RV = reader.logits([tuple(row)], hidden).masked_fill(~allowed_V, -torch.inf)
        token_R = draw(logits_RV)
        surest = int(logits_RV.softmax(-1).gather(1, token_R[:, None]).argmax())
        row[hidden.pop(surest)] = int(token_R[surest])
        # [MASK] stays visible: the places that are still open.
        steps.append(reader.tokenizer.decode(row[begin:-1], skip_special_tokens=False))
    return tuple(row[begin:-1]), steps


def _after(reader: Reader, ids: Ids, found: Ids) -> str:
    """Return the text of tokens that follow others, with the space between them where there is one."""
    whole, before = (str(reader.tokenizer.decode(list(each))) for each in ((*ids, *found), ids))
    return whole[len(before) :] if whole.startswith(before) else str(reader.tokenizer.decode(list(found)))


def _ordinary(reader: Reader) -> Tensor:
    """Return which ids stand for text, bool of shape (V,)."""
    vocabulary = reader.vocabulary
    ordinary_V = torch.arange(vocabulary.size) < vocabulary.used
    ordinary_V[[*vocabulary.special, vocabulary.unk]] = False
    return ordinary_V


def _check_fits(reader: Reader, length: int, what: str) -> None:
    if length > reader.longest:
        raise RunError(
            f"{what} has {length} tokens with its frame, and rows of this model {reader.longest}; shorten it"
        )


_ASKED: dict[str, Callable[..., dict[str, Any]]] = {"fill": fill, "generate": generate}
_OF_ROWS: dict[str, Callable[..., dict[str, Any]]] = {"rows": rows_of, "find": found_in, "facts": facts_of}


def answer(
    models: Models, question: Mapping[str, Any], say: Callable[[str], None] = lambda _line: None
) -> dict[str, Any]:
    """Answer a question of :mod:`workbench.client.asking`; an error is an answer, ``{"error": text}``.

    Args:
        question: ``ask``: fill or generate, or rows, find or facts; ``folder`` of the run, or for the last three
            ``recipe`` as JSON; ``arguments`` of the function. ``prepare`` of a recipe prepares its text.
        say: called with a line now and then while text is prepared.
    """
    try:
        if question["ask"] == "prepare":
            return prepared(Recipe.from_json(question["recipe"]), say)
        folder = RunFolder(Path(question["folder"])) if "folder" in question else None
        if (of_rows := _OF_ROWS.get(question["ask"])) is not None:
            return of_rows(folder or Recipe.from_json(question["recipe"]), **question["arguments"])
        return _ASKED[question["ask"]](models, folder, **question["arguments"])
    except (WorkbenchError, CheckpointError) as error:
        return {"error": str(error)}
    # Whatever it is: the process stays, and who asked is told.
    except Exception as error:
        return {"error": typed_line(error)}


def main() -> int:
    """Answer until stdin ends."""
    # Half of the cores: the run that is asked about may train on them.
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // 2))
    answers = sys.stdout
    # What a library prints must not stand between two answers.
    sys.stdout = sys.stderr
    models = Models()

    def tell(found: dict[str, Any]) -> None:
        print(json.dumps(found), file=answers, flush=True)

    for line in sys.stdin:
        tell(answer(models, json.loads(line), lambda said: tell({"said": said})))
    return 0


if __name__ == "__main__":
    sys.exit(main())
