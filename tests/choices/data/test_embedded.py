"""The embedded corpus: harvested for real, without repetitions, the same every time."""

from __future__ import annotations

from functools import reduce
from pathlib import Path
from random import Random

import pytest

from workbench import presets
from workbench.base.errors import DataError
from workbench.choices.data import embedded
from workbench.choices.data.embedded import FACTOR, PRIME, Embedded, sampled_shingles, without_repetitions
from workbench.choices.data.prepare import prepare

SMALL = ("numpy", "filelock")


@pytest.mark.process
def test_harvest_of_a_few_packages():
    said: list[str] = []
    data = Embedded(packages=SMALL)
    data.collect(said.append)
    documents = list(data.documents())
    words = sum(len(text.split()) for text in documents)
    assert words > 60_000, said
    assert len(documents) == len(set(documents))
    paragraphs = [line for text in documents for line in text.split("\n")]
    assert len(paragraphs) == len(set(paragraphs))
    text = " ".join(paragraphs)
    assert not any(trace in text for trace in (">>> ", "```", "http://", "https://", ":class:", ".. note"))
    letters = sum(c.isalpha() or c.isspace() for c in text)
    assert letters > 0.93 * len(text)


@pytest.mark.extended
@pytest.mark.process
def test_same_every_time(tmp_path, monkeypatch):
    first = list(Embedded(packages=SMALL).documents())
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "another"))
    assert list(Embedded(packages=SMALL).documents()) == first


def test_how_far_reading_is_is_told(monkeypatch):
    said: list[str] = []
    monkeypatch.setattr(embedded, "SAY_SECONDS", 0.0)
    files = [[["a paragraph"]], [], [["another"]]] * 400
    assert list(embedded._counted(iter(files), 1200, said.append)) == files
    told = [f"file {number:,} of 1,200" for number in (1, *range(120, 1201, 120))]
    assert [line.rpartition(": ")[2] for line in said] == told, "the first, the last, each tenth: not one a second"
    monkeypatch.setattr(embedded, "SAY_SECONDS", 60.0)
    assert list(embedded._counted(iter(files), 1200, said.append)) == files
    assert len(said) == 12, "what takes a moment says one line"


def test_sources_name_versions():
    sources = Embedded(packages=SMALL).sources()
    assert list(sources["packages"]) == sorted(SMALL)
    version, files, digest = sources["packages"]["numpy"]
    assert version[0].isdigit()
    assert files > 100
    assert len(digest) == 12


def test_unknown_package():
    with pytest.raises(DataError, match=r"did you mean 'numpy'"):
        Embedded(packages=("nunpy",)).sources()


def sentence(*words: str) -> str:
    return "the model reads " + " ".join(words) + " and then writes what it has found into the file given to it"


def remaining(*documents: list[str]) -> int:
    return len(list(without_repetitions([((), document) for document in documents])))


def test_repetitions_go():
    long = [sentence("first"), sentence("completely", "different", *map(str.lower, "ABCDEFGHIJKLMNOP"))]
    again = list(without_repetitions([(("a",), long), (("b",), list(long))]))
    assert again == [(("a",), "\n".join(long))]
    # Numbers and case do not make a paragraph new, and neither does one name.
    assert remaining([sentence("BERT 12") * 2], [sentence("bert 24") * 2]) == 1
    assert remaining([sentence("bert") * 4], [sentence("roberta") * 4]) == 1


def test_shingles_are_values_of_a_polynomial_within_each_paragraph():
    random = Random(0)
    for paragraphs in ([], [[1] * 7], [[(1 << 32) - 1] * 90, [], [5] * 8], *(
        [[random.getrandbits(32) for _ in range(random.choice((0, 7, 8, 50)))] for _ in range(5)] for _ in range(50)
    )):  # fmt: skip
        runs = [[sums[i : i + 8] for i in range(len(sums) - 7)] for sums in paragraphs]
        values = [[reduce(lambda value, x: (value * FACTOR + x) % PRIME, run, 0) for run in each] for each in runs]
        assert sampled_shingles(paragraphs) == [[value for value in each if value % 4 == 0] for each in values]


@pytest.mark.extended
@pytest.mark.process
def test_the_whole_corpus_is_large_and_soon_made(
    embedded_seconds: float, shared_cache: Path, monkeypatch: pytest.MonkeyPatch
):
    """At least 1.5 million words; the bound on time is for a busy machine, idle it is a third of a minute or so."""
    monkeypatch.setenv("WORKBENCH_CACHE", str(shared_cache))
    # Tokens as presets have them, which README's commands may have prepared already.
    data, seconds = presets.fast().data, embedded_seconds
    words = sum(len(text.split()) for text in data.documents())
    prepared = prepare(data)
    print(f"{words:,} words in {seconds:.1f} s, {prepared.train.tokens + prepared.heldout.tokens:,} tokens")
    assert words >= 1_500_000
    assert prepared.heldout.tokens >= 100_000
    assert prepared.fingerprint["heldout_overlap"] <= 0.005
    assert seconds < 300
