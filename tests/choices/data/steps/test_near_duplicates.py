"""Near duplicates against every pair of documents, counted exactly, and beside datasketch."""

from __future__ import annotations

import itertools
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.choices.data.conftest import WORDS
from tests.choices.data.steps.judged import documents_of, judged, licence_texts
from workbench.choices.data.steps import Document, NearDuplicates
from workbench.choices.data.steps import near_duplicates as module
from workbench.choices.data.steps.near_duplicates import MOST_SHINGLES, jaccard


def shingles(text: str, words: int = 5) -> set[tuple[str, ...]]:
    found = re.findall(r"[^\W_]+", text.lower())
    return {tuple(found[at : at + words]) for at in range(len(found) - words + 1)}


def exact_pairs(texts: list[str], threshold: float) -> dict[tuple[int, int], float]:
    """Every pair (earlier, later) with at least this overlap."""
    sets = [shingles(text) for text in texts]
    pairs = {}
    for (a, one), (b, other) in itertools.combinations(enumerate(sets), 2):
        low, high = sorted((len(one), len(other)))
        # The overlap is at most the ratio of the sizes.
        if low and low >= threshold * high and (share := len(one & other) / len(one | other)) >= threshold:
            pairs[a, b] = share
    return pairs


def edited(count: int, seed: int = 0) -> list[str]:
    """Documents of 30 to 200 words, most of them an earlier one with some words replaced."""
    draw = random.Random(seed)
    texts: list[list[str]] = []
    for _ in range(count):
        if texts and draw.random() < 0.6:
            text = list(draw.choice(texts))
            for _ in range(draw.randint(0, 6)):
                text[draw.randrange(len(text))] = draw.choice(WORDS)
        else:
            text = draw.choices(WORDS, k=draw.randint(30, 200))
        texts.append(text)
    return [" ".join(text) for text in texts]


class Stream:
    """Short documents of 40 to 100 words made as they are read; three in ten repeat one but for a word."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[Document]:
        draw = random.Random(0)
        recent: list[list[str]] = []
        for number in range(self.count):
            if recent and draw.random() < 0.3:
                words = list(draw.choice(recent))
                words[draw.randrange(len(words))] = "changed"
            else:
                words = [f"w{int(draw.expovariate(1 / 3000))}" for _ in range(draw.randint(40, 100))]
                recent = [*recent[-999:], words]
            yield Document(number, (), " ".join(words))


@pytest.fixture
def all_earlier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare with all documents that share a band, not with the first few alone: as many as true pairs."""
    monkeypatch.setattr(module, "EARLIER", 100)


def candidate_pairs(step: NearDuplicates, texts: list[str]) -> set[tuple[int, int]]:
    """All pairs that share a band."""
    return {(a, b) for b, others in step._candidates(documents_of(texts)).items() for a in others}


def test_candidates_hold_nearly_all_pairs_and_the_first_is_kept() -> None:
    texts, step = edited(400), NearDuplicates()
    pairs = exact_pairs(texts, 0.8)
    assert len(pairs) > 150
    verdicts = judged(step, texts)
    gone = {verdict.document.number for verdict in verdicts if verdict.removed}
    # No document is removed that is not like one that is kept, and nearly no pair is left.
    for number in gone:
        other = int(verdicts[number].detail.split()[-1])
        assert other not in gone
        assert pairs[other, number] >= 0.8
    assert sum(not gone & {*pair} for pair in pairs) <= 0.05 * len(pairs)


def test_the_threshold_is_one_of_exact_overlap() -> None:
    texts = edited(200, seed=3)
    for threshold in (0.5, 0.7, 0.95):
        gone = [verdict for verdict in judged(NearDuplicates(threshold=threshold), texts) if verdict.removed]
        pairs = exact_pairs(texts, threshold)
        assert gone
        assert all((int(each.detail.split()[-1]), each.document.number) in pairs for each in gone)


@pytest.mark.usefixtures("all_earlier")
def test_datasketch_finds_the_same_pairs_or_fewer() -> None:
    from datasketch import MinHash, MinHashLSH

    texts = edited(200, seed=5)
    pairs = exact_pairs(texts, 0.8)
    index, theirs = MinHashLSH(threshold=0.8, num_perm=128), set()
    for number, text in enumerate(texts):
        sketch = MinHash(num_perm=128, seed=1)
        sketch.update_batch([" ".join(each).encode() for each in shingles(text)])
        theirs |= {(other, number) for other in index.query(sketch)}
        index.insert(number, sketch)
    ours = candidate_pairs(NearDuplicates(), texts)
    ours_found, theirs_found = (len(pairs.keys() & found) / len(pairs) for found in (ours, theirs))
    assert ours_found >= max(0.95, theirs_found)
    assert theirs_found > 0.8


def test_long_documents_are_compared_by_a_sample() -> None:
    draw = random.Random(1)
    names = [f"w{number}" for number in range(20_000)]
    text = draw.choices(names, k=6 * MOST_SHINGLES)
    changed = list(text)
    for _ in range(600):
        changed[draw.randrange(len(changed))] = "other"
    step, texts = NearDuplicates(), [" ".join(each) for each in (text, changed)]
    one, other = step._shingles(documents_of(texts))
    assert len(one.hash_G) <= MOST_SHINGLES
    (exact,) = exact_pairs(texts, 0.5).values()
    assert jaccard(one, other) == pytest.approx(exact, abs=0.05)
    assert bool(judged(step, texts)[1].removed) == (jaccard(one, other) >= 0.8)


def test_texts_without_a_shingle_are_kept() -> None:
    assert not any(verdict.removed for verdict in judged(NearDuplicates(), ["too short", "too short", ""]))


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    (problem,) = NearDuplicates().problems_here()
    assert "pip install 'workbench[data]'" in problem.message


@pytest.mark.extended
@pytest.mark.usefixtures("all_earlier")
def test_pairs_among_licence_texts() -> None:
    texts = licence_texts()
    pairs = exact_pairs(texts, 0.7)
    print(f"{len(pairs)} pairs with an overlap of 0.7")
    step = NearDuplicates(threshold=0.7)
    gone = {verdict.document.number for verdict in judged(step, texts) if verdict.removed}
    assert sum(bool(gone & {*pair}) for pair in pairs) >= 0.95 * len(pairs)
    for threshold in (0.7, 0.8):
        wanted = {pair for pair, share in pairs.items() if share >= threshold}
        found = candidate_pairs(NearDuplicates(threshold=threshold), texts)
        print(f"threshold {threshold}: {len(wanted & found)} of {len(wanted)} pairs are candidates")
        assert len(wanted & found) >= 0.95 * len(wanted)


@pytest.mark.process
@pytest.mark.extended
def test_many_short_documents_take_minutes_and_little_memory() -> None:
    """One in twenty of those asked for, in a process of its own; prints what all would take."""
    code = f"""
import json, time
from tests.choices.data.steps.test_near_duplicates import Stream
from tests.peak_memory import peak_mib
from workbench.choices.data.steps import NearDuplicates
before = peak_mib()
began = time.monotonic()
gone = sum(bool(each.removed) for each in NearDuplicates().judge(Stream({50_000})))
after = peak_mib()
print(json.dumps([gone, time.monotonic() - began, after - before]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    gone, seconds, mib = json.loads(done.stdout)
    assert 0.25 < gone / 50_000 < 0.35
    print(f"50,000 documents: {seconds:.1f} s, {mib:.0f} MiB more; a million: about {20 * seconds:.0f} s")
    assert 20 * seconds < 300 * 3, "five minutes, with room for a busy machine"
