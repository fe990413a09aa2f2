"""Splitting: whole sources first, then documents, then parts; near the share that was asked for."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from workbench.choices.data.cutting import cut
from workbench.choices.data.split import (
    NEAR,
    PART_CHARACTERS,
    SHORTER_PARTS,
    Split,
    choose_split,
    document_hash,
    is_heldout,
)

DOCUMENTS = [(("package%d" % (i % 30), "module%d" % i), "text of document %d " % i * (1 + i % 7)) for i in range(900)]  # noqa: UP031


def shares(split: Split, documents: list[tuple[tuple[str, ...], str]]) -> float:
    sides = [side for sources, text in documents for side in split.sides(sources, text)]
    return sum(len(text) for text, heldout in sides if heldout) / sum(len(text) for text, _ in sides)


def test_shares_and_extremes():
    held = sum(is_heldout(f"document {i}", 0.05) for i in range(10_000))
    assert 450 < held < 600
    assert not any(is_heldout(f"document {i}", 1e-9) for i in range(1000))
    assert all(is_heldout(f"document {i}", 1 - 1e-9) for i in range(1000))


@pytest.mark.parametrize("fraction", [0.05, 0.1, 0.3])
def test_whole_sources_are_held_out_near_the_share(fraction):
    split = choose_split(DOCUMENTS, fraction)
    assert split.grain == "source 1"
    assert NEAR[0] * fraction <= shares(split, DOCUMENTS) <= 1.1 * fraction
    sides = {(sources[0], heldout) for sources, text in DOCUMENTS for _, heldout in split.sides(sources, text)}
    assert len(sides) == 30, "no package is on both sides"
    shuffled = random.Random(0).sample(DOCUMENTS, len(DOCUMENTS))
    assert choose_split(shuffled, fraction) == split
    assert split.described()["sources"] == sorted(name for (name,) in split.names)


def test_a_source_that_holds_nearly_all_is_never_held_out():
    large = [(("large", f"module{i}"), "x" * 900) for i in range(900)]
    split = choose_split(large + DOCUMENTS, 0.01)
    assert split.grain == "source 1"
    assert ("large",) not in split.names


def test_one_source_alone_is_split_by_its_modules_then_by_documents():
    one = [(("only", f"module{i % 40}"), text) for i, (_, text) in enumerate(DOCUMENTS)]
    split = choose_split(one, 0.1)
    assert split.grain == "source 2"
    assert 0.05 <= shares(split, one) <= 0.11
    single = [(("only", "module"), text) for _, text in DOCUMENTS]
    assert choose_split(single, 0.1).grain == "document"
    assert 0.05 <= shares(choose_split(single, 0.1), single) <= 0.2


def test_one_document_is_split_in_parts_and_what_stays_together_is_one_document():
    draw = random.Random(0)
    text = " ".join("word%d" % draw.randrange(10**6) for _ in range(200_000))  # noqa: UP031
    split = choose_split([((), text)], 0.05)
    assert split.grain == "part"
    sides = list(split.sides((), text))
    assert " ".join(side.text for side in sides) == text
    assert all(a.heldout != b.heldout for a, b in pairwise(sides))
    assert 0.02 < shares(split, [((), text)]) < 0.1
    assert max(len(side.text) for side in sides if not side.heldout) > 5 * PART_CHARACTERS
    # Short documents beside it are split as before.
    assert list(split.sides((), "short")) == [("short", is_heldout("short", 0.05))]


def words(count: int, seed: int = 0) -> str:
    draw = random.Random(seed)
    return " ".join("word%d" % draw.randrange(10**6) for _ in range(count))  # noqa: UP031


@pytest.mark.parametrize("seed", range(8))
def test_of_one_small_file_something_is_held_out(seed):
    """66 kB as a text file is read: documents of about 8000 characters, of which 5% may well be none."""
    documents = [((), piece) for piece in cut(words(6000, seed), PART_CHARACTERS)]
    split = choose_split(documents, 0.05)
    assert 0 < shares(split, documents) < 0.25
    usual = Split(0.05, "part")
    if shares(usual, documents):
        assert split in (usual, Split(0.05, "document"))
    else:
        assert split.part_characters in SHORTER_PARTS
        assert split.described()["part_characters"] == split.part_characters


def test_where_usual_parts_hold_something_out_the_split_stays_what_it_was():
    """Which documents are held out decides every score: hashes of what was held out before shorter parts existed."""
    long = [((), words(200_000))]
    assert choose_split(long, 0.05) == Split(0.05, "part")
    assert choose_split(long, 0.05).described() == {"grain": "part", "sources": []}
    splits = ((choose_split(long, 0.05), long), (choose_split(DOCUMENTS, 0.1), DOCUMENTS))
    held = [side.text for split, documents in splits
            for sources, text in documents for side in split.sides(sources, text) if side.heldout]  # fmt: skip
    assert document_hash("|".join(held)) == 17566340230358769252
