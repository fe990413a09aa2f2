"""What a tokenizer's report counts, against a count by hand."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter

import pytest
from tokenizers import Tokenizer

from workbench.choices.data import Files
from workbench.choices.data.prepare import prepare, training_texts
from workbench.choices.data.tokenizers.report import in_words, tokenizer_report


@pytest.mark.parametrize(
    "choice",
    [
        {"kind": "trained", "vocabulary_size": 200},
        {"kind": "trained", "algorithm": "bpe", "vocabulary_size": 400},
        {"kind": "characters", "rest": "unknown", "vocabulary_size": 64},
        {"kind": "bytes"},
    ],
    ids=["wordpiece", "bpe", "characters", "bytes"],
)
def test_counts_are_those_of_the_text(tmp_path, sentences, choice) -> None:
    texts = [
        f"{text} {chr(0x4E00 + number)}" if number % 3 == 0 else text for number, text in enumerate(sentences(300))
    ]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    data = Files(paths=(str(path),), tokenizer=choice, sequence_length=16, batch_size=4)
    said: list[str] = []
    prepared = prepare(data, said.append)
    report = tokenizer_report(prepared)
    json.dumps(report)
    assert said[-1] == in_words(report)
    training = list(training_texts(data))
    tokenizer = Tokenizer.from_file(prepared.tokenizer_file)
    counts: Counter[int] = Counter()
    for text in training:
        counts.update(tokenizer.encode(text, add_special_tokens=False).ids)
    tokens, size, words = counts.total(), sum(len(t.encode()) for t in training), sum(len(t.split()) for t in training)
    train = report["train"]
    assert (train["tokens"], train["bytes"], train["words"]) == (tokens, size, words)
    assert train["tokens_per_byte"] == pytest.approx(tokens / size)
    assert train["tokens_per_word"] == pytest.approx(tokens / words)
    assert train["unknown_share"] == pytest.approx(counts[1] / tokens)
    assert (counts[1] > 0) == (choice.get("vocabulary_size", 400) <= 200), "of those, two cannot write every character"
    names = set(range(5, tokenizer.get_vocab_size()))
    assert report["vocabulary"]["ids"] == len(names)
    assert report["vocabulary"]["used"] == len(names & set(counts))
    assert {each["id"] for each in report["unused"]} <= names - set(counts)
    assert len(report["unused"]) == min(20, len(names - set(counts)))
    assert [each["count"] for each in report["commonest"]] == [n for _, n in counts.most_common() if n][:20] or counts[
        1
    ]
    longest = report["longest"][0]
    assert len(longest["text"]) == max(len(tokenizer.decode([token])) for token in names & set(counts))
    # An entry of an older version knows the bytes of its held-out text alone.
    fingerprint = {name: value for name, value in prepared.fingerprint.items() if name != "text"}
    older = tokenizer_report(dataclasses.replace(prepared, fingerprint=fingerprint))
    assert older["heldout"] | {"words": 0, "tokens_per_word": 0} == report["heldout"] | {
        "words": 0,
        "tokens_per_word": 0,
    }
    assert older["train"]["tokens_per_word"] is None
    assert "a word" not in in_words(older)
