"""Steps in a row: what is kept of them, what is read again, and the split behind them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from tokenizers import Tokenizer

from workbench.base.errors import DataError
from workbench.choices.data import Files, after_steps
from workbench.choices.data.after_steps import EXAMPLES, AfterSteps
from workbench.choices.data.prepare import prepare
from workbench.choices.data.steps import ExactDuplicates
from workbench.choices.data.steps.step import Step, Verdict, kept, removed
from workbench.recipes.recipe import Recipe

SMALL = {"tokenizer": {"kind": "trained", "vocabulary_size": 256}, "sequence_length": 16, "batch_size": 4}


class Shout(Step):
    """Remove what has few words, and write the word "the" in capitals."""

    listed = False
    kind: Literal["shout"] = "shout"
    fewest: int = 10
    lose_one: bool = False

    def judge(self, documents: Any) -> Iterator[Verdict]:
        for document in list(documents)[self.lose_one :]:
            words = document.text.split()
            if len(words) < self.fewest:
                yield removed(document, "too short", f"{len(words)} words")
            elif "the" in words:
                text = " ".join("THE" if word == "the" else word for word in words)
                yield Verdict(document, text, changes={"the": words.count("the")})
            else:
                yield kept(document)


def quiet(line: str) -> None:
    """Say nothing."""


@pytest.fixture
def corpus(tmp_path: Path, sentences) -> Path:
    """300 documents, 40 of which are written twice."""
    path = tmp_path / "corpus.jsonl"
    texts = sentences(300)
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in [*texts, *texts[:40]]))
    return path


def data_of(corpus: Path, *steps: Step, **changes: Any) -> Files:
    return Files(paths=(str(corpus),), steps=steps, **{**SMALL, **changes})


def expected(texts: list[str], fewest: int = 10) -> list[str]:
    """Return what the two steps leave, the slow way."""
    long = [text for text in dict.fromkeys(texts) if len(text.split()) >= fewest]
    return [" ".join("THE" if word == "the" else word for word in text.split()) for text in long]


def test_documents_go_through_the_steps_in_order(corpus, sentences):
    after = AfterSteps(data_of(corpus, ExactDuplicates(), Shout()), (), quiet)
    every = [*sentences(300), *sentences(300)[:40]]
    assert [text for _, text in after] == expected(every)
    assert [text for _, text in after] == expected(every), "read as often as asked for"
    assert [document.text.casefold() for document in after.documents()] == [
        every[document.number] for document in after.documents()
    ]


def test_reports_count_what_came_in_and_what_became_of_it(corpus, sentences, tmp_path):
    after = AfterSteps(data_of(corpus, ExactDuplicates(), Shout()), (), quiet)
    texts = sentences(300)
    short = [text for text in texts if len(text.split()) < 10]
    shouted = [text for text in texts if len(text.split()) >= 10 and "the" in text.split()]
    first, second = after.reports
    assert (first["documents_in"], first["documents_out"], first["removed"]) == (340, 300, 40)
    assert first["reasons"] == {"repeated": 40}
    assert first["characters_in"] - first["characters_out"] == first["removed_characters"] == sum(map(len, texts[:40]))
    assert (second["documents_in"], second["removed"], second["changed"]) == (300, len(short), len(shouted))
    assert second["changes"] == {"the": sum(text.split().count("the") for text in shouted)}
    assert second["removed_character_share"] == sum(map(len, short)) / sum(map(len, texts))
    assert second["settings"] == {"fewest": 10, "lose_one": False}
    for which in ("kept", "removed", "changed"):
        assert len(second[f"{which}_examples"]) == min(EXAMPLES, second.get(which, 300))
    assert all("THE" in each["text"] and "the" in each["before"] for each in second["changed_examples"])
    after.write(tmp_path)
    listed = [json.loads(line) for line in (tmp_path / "removed.jsonl").read_text().splitlines()]
    assert [(each["number"], each["detail"]) for each in listed[:40]] == [
        (300 + number, f"of document {number}") for number in range(40)
    ]
    assert [texts[each["number"]][:120] for each in listed[40:]] == [each["text"] for each in listed[40:]]
    assert json.loads((tmp_path / "preparation.json").read_text())["documents_out"] == 300 - len(short)


def test_shared_first_steps_are_applied_once(corpus, monkeypatch):
    said: list[str] = []
    AfterSteps(data_of(corpus, ExactDuplicates(), Shout()), (), said.append)
    monkeypatch.setattr(ExactDuplicates, "judge", lambda self, documents: pytest.fail("applied again"))
    AfterSteps(data_of(corpus, ExactDuplicates(), Shout(fewest=20)), (), said.append)
    assert [line.split(":")[0] for line in said] == ["exact_duplicates", "shout"] * 2
    with pytest.raises(pytest.fail.Exception):
        AfterSteps(data_of(corpus, Shout(), ExactDuplicates()), (), quiet)


def test_time_left_is_told(corpus, monkeypatch):
    monkeypatch.setattr(after_steps, "SAY_SECONDS", 0.0)
    said: list[str] = []
    AfterSteps(data_of(corpus, Shout()), (), said.append)
    told = [re.fullmatch(r"shout: (\d+) of 340 documents, about \d+ s left", line) for line in said[:-1]]
    assert [match and int(match[1]) for match in told] == [64, 128, 192, 256, 320]


def test_a_step_that_loses_a_document_is_refused(corpus, cache):
    with pytest.raises(DataError, match="gave 339 verdicts for 340 documents"):
        AfterSteps(data_of(corpus, Shout(lose_one=True)), (), quiet)
    assert not list(cache.rglob("*.tmp"))


def test_tokens_are_those_of_what_is_left_and_heldout_text_is_foreign(corpus, sentences):
    data = data_of(corpus, ExactDuplicates(), Shout(), heldout_fraction=0.2)
    said: list[str] = []
    prepared = prepare(data, said.append)
    tokenizer = Tokenizer.from_file(prepared.tokenizer_file)
    read: dict[str, list[str]] = {}
    for name, store in (("train", prepared.train), ("heldout", prepared.heldout)):
        bounds = zip(store.offsets_D1[:-1], store.offsets_D1[1:], strict=True)
        read[name] = [tokenizer.decode(store.ids_N[begin:end].tolist()) for begin, end in bounds]
    assert sorted(read["train"] + read["heldout"]) == sorted(text.lower() for text in expected(sentences(300)))
    assert not set(read["train"]) & set(read["heldout"])
    assert any(line.startswith("exact_duplicates: 340 documents in, 40 removed (11.8%") for line in said)
    assert prepared.fingerprint["preparation"][0]["removed"] == 40
    assert prepare(data, pytest.fail).fingerprint == prepared.fingerprint


def test_heldout_files_stay_as_they_are_and_no_step_sees_them(corpus, sentences, tmp_path):
    own = tmp_path / "own.jsonl"
    # Also among the training documents, where a step would change it beyond recognition.
    own.write_text("".join(json.dumps({"text": text}) + "\n" for text in sentences(300)[:30]))
    data = data_of(corpus, Shout(), heldout_paths=(str(own),))
    prepared = prepare(data, quiet)
    raw = prepare(data_of(corpus, heldout_paths=(str(own),)), quiet)
    assert prepared.heldout.documents == raw.heldout.documents == 30
    assert prepared.fingerprint["preparation"][0]["documents_in"] == 340 - 60
    assert prepared.fingerprint["heldout_overlap_before"] == 0


def test_without_steps_nothing_is_different(corpus):
    plain = prepare(data_of(corpus), quiet)
    assert not {"steps", "preparation"} & plain.fingerprint.keys()
    assert not (Path(plain.tokenizer_file).parent / "preparation.json").exists()


def test_one_step_may_be_named_alone(corpus):
    one = Recipe().with_assignments(["data.steps=exact_duplicates"])
    assert one == Recipe().with_(data={"steps": [{"kind": "exact_duplicates"}]})
    assert one.hash != Recipe().hash
    assert Recipe.from_json(one.to_json()) == one
