"""Rows that are shown are those that training reads: recorded in the loop, step by step, masks and labels included."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
import torch

from tests.choices.data.test_embedded import SMALL
from tests.corpus import CYCLE
from tests.tiny_runs import tiny_recipe
from workbench import presets
from workbench.base.errors import RunError
from workbench.choices.data.prepare import prepare
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.recipes.recipe import Recipe
from workbench.seen.asked import rows
from workbench.seen.facts import shares
from workbench.seen.finding import find_text, spellings
from workbench.seen.page import SIDES
from workbench.seen.rows import Reader, Rows
from workbench.training.assemble import assemble
from workbench.training.loop import Training


class Recorded:
    """Inputs of the network that predicts tokens, and the labels that count, step by step."""

    def __init__(self, recipe: Recipe) -> None:
        self.training = Training(recipe, assemble(recipe, prepare(recipe.data, say=lambda line: None)))
        self.true: list[int] = []
        self.seen: list[int] = []
        self.labels: list[int] = []
        model = self.training.model
        model.stacks().get("generator", model.stacks()["main"]).register_forward_pre_hook(self._read)
        for each in model.modules():
            for name in ("_score_region", "_fill_region"):
                if hasattr(each, name):
                    setattr(each, name, self._scored(getattr(each, name)))

    def _read(self, module: Any, arguments: tuple[Any, ...]) -> None:
        self.seen += arguments[0].flatten().tolist()
        self.true += arguments[1].tokens_BT.flatten().tolist()

    def _scored(self, score: Callable[..., Any]) -> Callable[..., Any]:
        def scored(x_ND: torch.Tensor, labels_N: torch.Tensor, weight_N: torch.Tensor, *more: Any) -> Any:
            counts_N = weight_N.reshape(-1, len(labels_N)).sum(0) > 0
            self.labels += labels_N[counts_N].tolist()
            return score(x_ND, labels_N, weight_N, *more)

        return scored

    def steps(self, number: int) -> Iterator[tuple[list[int], list[int], list[int]]]:
        try:
            for _ in range(number):
                self.true, self.seen, self.labels = [], [], []
                self.training.step()
                yield self.true, self.seen, self.labels
        finally:
            self.training.close()


def flat(found: Rows, name: str) -> list[Any]:
    return [each for row in found.rows for each in getattr(row, name)]


LENGTHS = {
    "sequence_length": {"kind": "stages", "values": [16, 32], "until": [0.5]},
    "batch_size": {"kind": "stages", "values": [8, 6], "until": [0.5]},
}
FALLING = {"kind": "linear", "start": 0.4, "end": 0.1}


@pytest.mark.parametrize(
    "changes",
    [
        {"objective": {"mask_rate": FALLING}},
        {"objective": {"selection": "whole_word", "mask_rate": 0.3}, "data": LENGTHS},
        {"objective": {"selection": "span", "mask_rate": 0.3}},
        {"objective": {"selection": "ngram", "corruption": "all_mask"}},
        {"objective": {"sentence": "order"}},
        {"objective": "causal", "data": LENGTHS, "execution": {"micro_batch_size": 2}},
        {"objective": {"kind": "hybrid", "causal_share": FALLING}},
        {"objective": "diffusion", "data": LENGTHS},
        {"objective": "replaced_token"},
        {"objective": {"kind": "phases", "parts": ["causal", "masked"], "until": [0.5]}},
    ],
    ids=lambda changes: json.dumps(changes)[:60],
)
def test_rows_of_a_step_are_those_that_training_reads(corpus: Path, changes: dict[str, Any]) -> None:
    if changes["objective"] == {"sentence": "order"}:
        corpus = sentences(corpus)
    recipe = tiny_recipe(corpus, steps=6).with_(**changes)
    shown = Reader(recipe, None, lambda line: None)
    for step, (true, seen, labels) in enumerate(Recorded(recipe).steps(6)):
        found = shown.rows(step, most=100)
        assert found.batch == len(found.rows)
        assert flat(found, "tokens") == true
        assert flat(found, "seen") == seen
        assert [text for text in flat(found, "targets") if text] == [shown.text(label) for label in labels]


def sentences(corpus: Path) -> Path:
    """The same text, two sentences a document."""
    texts = (json.loads(line)["text"].split() for line in corpus.read_text(encoding="utf-8").splitlines())
    return written(
        corpus.parent.parent / "sentences.jsonl",
        (f"{' '.join(words[:20])}. {' '.join(words[20:])}." for words in texts),
    )


def written(path: Path, texts: Iterable[str]) -> Path:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    return path


def test_a_row_names_its_documents_and_their_parts(corpus: Path) -> None:
    recipe = tiny_recipe(corpus)
    reader = Reader(recipe, None, lambda line: None)
    store = reader.prepared.train
    for row in reader.rows(5, most=8).rows:
        assert [piece.begin for piece in row.pieces] == [0, *(piece.end for piece in row.pieces[:-1])]
        for piece in row.pieces:
            start = int(store.offsets_D1[piece.document]) + piece.offset
            part = store.ids_N[start : start + piece.end - piece.begin].tolist()
            assert list(row.tokens[piece.begin : piece.end]) == part
            assert list(row.positions[piece.begin : piece.end]) == list(range(len(part)))
            assert piece.size == store.offsets_D1[piece.document + 1] - store.offsets_D1[piece.document]


def test_rows_and_places_of_a_mixture_name_their_part(tmp_path: Path) -> None:
    parts = []
    for name, words in {"low": CYCLE[:10], "high": CYCLE[10:]}.items():
        texts = (" ".join(words[(n + k) % 10] for k in range(1, 40)) + f" {name} {n}" for n in range(80))
        path = written(tmp_path / f"{name}.jsonl", texts)
        parts.append({"name": name, "source": {"kind": "files", "paths": [str(path)]}})
    mixture = tiny_recipe(tmp_path, steps=100).with_(data={"kind": "mixture", "parts": parts})
    reader = Reader(mixture, None, lambda line: None)
    for row in reader.rows(90, most=8).rows:
        (part,) = {piece.source for piece in row.pieces}
        assert set(row.tokens) & set(spellings(reader, "stone" if part == "high/high.jsonl" else "amber")[0].tolist())
        assert row.epoch > 0
    [place] = find_text(reader, "high 7").places
    assert place.source == "high/high.jsonl"
    for reading in place.readings:
        assert reading.epoch == reader.rows(reading.step, reading.place, 1).rows[0].epoch
    assert len({reading.epoch for reading in place.readings}) > 1


def test_the_shares_of_a_mixture_are_those_of_the_rows(tmp_path: Path) -> None:
    parts = []
    for name, weights in {"low": (3, 1), "high": (1, 3)}.items():
        path = written(tmp_path / f"{name}.jsonl", [f"{name} {' '.join(CYCLE)} {n}" for n in range(80)])
        weight = {"kind": "linear", "start": weights[0], "end": weights[1]}
        parts.append({"name": name, "source": {"kind": "files", "paths": [str(path)]}, "weight": weight})
    mixture = tiny_recipe(tmp_path, steps=160).with_(data={"kind": "mixture", "parts": parts, "span_tokens": 40960})
    reader = Reader(mixture, None, lambda line: None)
    found = shares(reader, 4)
    bounds = [0, *(step for step, _ in found)]
    for (first, last), (_, share) in zip(pairwise(bounds), found, strict=True):
        read = [row.pieces[0].source for step in range(first, last) for row in reader.rows(step, most=64).rows]
        assert share == pytest.approx(
            [read.count(f"{name}/{name}.jsonl") / len(read) for name in ("low", "high")], abs=1e-3
        )
    assert found[0][1][0] > 0.6 > 0.4 > found[-1][1][0]


def test_the_page_is_static_and_says_without_colours_what_is_hidden(corpus: Path) -> None:
    found = rows(tiny_recipe(corpus), step=3, rows=2, say=lambda line: None)
    page, text = found._repr_html_(), str(found)
    assert "<script" not in page
    assert page.count("class='wb-row'") == 2
    masked = sum(mark == "masked" for row in found.rows for mark in row.marks)
    assert 0 < masked == page.count("<sup>?</sup>") == text.count("[MASK]?")
    assert "hidden, to be predicted" in page
    assert "hidden, to be predicted" in text
    assert SIDES in page
    assert SIDES in text
    assert f"document {found.rows[0].pieces[0].document:,}" in text
    assert json.loads(json.dumps(found.to_dict()))["step"] == 3


def test_text_and_names_are_never_markup(tmp_path: Path) -> None:
    texts = (f"<b>bold{n}</b> & <script>x</script> {CYCLE[n % 20]} {n * n} words" for n in range(300))
    recipe = tiny_recipe(written(tmp_path / "a.jsonl", texts), name="<i>")
    page = rows(recipe, say=lambda line: None)._repr_html_()
    assert "<script" not in page
    assert "<i>" not in page
    assert "&lt;" in page


@pytest.mark.process
def test_a_run_is_read_as_it_went_and_as_it_will_go_on(corpus: Path, tmp_path: Path) -> None:
    recipe = tiny_recipe(corpus, steps=12).with_(
        data={"batch_rule": {"kind": "simigrad", "every": 2, "lowest": 2, "highest": 32, "grow": 2}}
    )
    run: Run = launch(recipe, on="inline", runs_dir=tmp_path)
    run.wait()
    found = [rows(run, step, 1, say=lambda line: None) for step in range(12)]
    assert len({each.batch for each in found}) > 1
    for before, after in pairwise(found):
        assert after.tokens == before.tokens + before.batch * before.length
        assert after.rows[0].sample == before.rows[0].sample + before.batch
    assert all(each.past for each in found)
    with pytest.raises(RunError, match="beyond the last, which is 11"):
        rows(run, 12)
    # Of a recipe nobody knows what its gradients will say.
    with pytest.raises(RunError, match="follows the gradients"):
        rows(recipe, 3)
    assert rows(recipe, 0).batch == found[0].batch


def test_what_cannot_be_known_is_said(corpus: Path) -> None:
    seconds = tiny_recipe(corpus).with_(budget="60 s")
    assert rows(seconds, 10_000, 1).tokens == 10_000 * 8 * 32
    ramp = seconds.with_(data={"batch_size": {"kind": "linear", "start": 4, "end": 16}})
    with pytest.raises(RunError, match="scheduled by seconds"):
        rows(ramp, 5)
    noted = {kind: rows(tiny_recipe(corpus).with_(objective=kind)).notes for kind in ("replaced_token", "selective")}
    assert "these rows are the generator's" in noted["replaced_token"][0]
    assert noted["selective"] == ()
    falling = seconds.with_(objective={"mask_rate": FALLING})
    assert "rates are scheduled by seconds" in rows(falling, 5).notes[0]
    for step, error in ((-1, "before the first"), (30, "beyond the last, which is 29")):
        with pytest.raises(RunError, match=error):
            rows(tiny_recipe(corpus), step)


@pytest.mark.process
def test_a_document_of_the_embedded_corpus_names_its_package_and_file() -> None:
    data = {"kind": "embedded", "packages": SMALL, "sequence_length": 64, "heldout_fraction": 0.2}
    recipe = presets.fast().with_(data=data, **{"data.tokenizer.vocabulary_size": 400})
    reader = Reader(recipe, None, lambda line: None)
    texts: dict[str, str] = {}
    for sources, text in recipe.data.sourced_documents():
        name = "/".join(sources)
        texts[name] = texts.get(name, "") + letters(text)
    store = reader.prepared.train
    pieces = [piece for step in range(9) for row in reader.rows(step).rows for piece in row.pieces]
    assert len({piece.source for piece in pieces}) > 2
    for piece in pieces:
        ids = store.ids_N[store.offsets_D1[piece.document] : store.offsets_D1[piece.document + 1]].tolist()
        assert letters(reader.tokenizer.decode(ids))[:40] in texts[piece.source]


def test_a_document_of_files_names_its_file_and_is_split_as_before(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    for name in ("first", "below/second"):
        texts = [f"{name[-5:]} {' '.join(Random(number).choices(CYCLE, k=60))} {number}" for number in range(60)]
        written(tmp_path / f"{name}.jsonl", [*texts, texts[0]])
    recipe = tiny_recipe(tmp_path).with_(**{"data.steps": ["exact_duplicates"]})
    reader = Reader(recipe, None, lambda line: None)
    assert reader.prepared.fingerprint["heldout_split"]["grain"] == "document"
    (second,) = find_text(reader, texts[7][:60]).places
    assert second.source == "below/second.jsonl"
    assert {piece.source for row in reader.rows(0).rows for piece in row.pieces} <= {"first.jsonl", second.source}
    (left,) = find_text(reader, texts[0][:60]).removed
    assert left["sources"] == ["below/second.jsonl"]


def letters(text: str) -> str:
    return "".join(filter(str.isalnum, text)).lower()
