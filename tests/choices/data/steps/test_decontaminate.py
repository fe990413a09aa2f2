"""Runs of 13 words of evaluation sets, against a search in a list of all."""

from __future__ import annotations

import gzip
import json
import lzma
import random
from pathlib import Path

import pytest

from tests.choices.data.steps.judged import documents_of, judged
from workbench.base.errors import DataError
from workbench.choices.data.steps import Decontaminate
from workbench.choices.data.steps import decontaminate as module
from workbench.recipes.recipe import Recipe


def text_of(draw: random.Random, count: int) -> list[str]:
    return [f"w{draw.randrange(10**6)}" for _ in range(count)]


def runs(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + 13]) for at in range(len(words) - 12)}


@pytest.fixture
def sets(tmp_path: Path) -> tuple[Path, list[list[str]]]:
    """Ten texts of evaluation sets in files of every kind, and a file that is none."""
    draw = random.Random(0)
    texts = [text_of(draw, 30) for _ in range(10)]
    joined = [" ".join(words) for words in texts]
    folder = tmp_path / "eval"
    folder.mkdir()
    (folder / "a.txt").write_text(joined[0])
    with lzma.open(folder / "b.jsonl.xz", "wt") as file:
        file.writelines(json.dumps({"question": text, "label": 1}) + "\n" for text in joined[1:4])
    with gzip.open(folder / "c.json.gz", "wt") as file:
        json.dump({"data": [{"paragraphs": [{"context": text} for text in joined[4:7]]}]}, file)
    (folder / "d.json").write_text("".join(json.dumps([text]) + "\n" for text in joined[7:]))
    (folder / "picture.png").write_bytes(b"\x89PNG")
    return folder, texts


def corpus(texts: list[list[str]]) -> list[list[str]]:
    """Sixty documents; a third of them quotes 10 to 30 words of an evaluation text."""
    draw, documents = random.Random(1), []
    for number in range(60):
        words = text_of(draw, draw.randint(5, 80))
        if number % 3 == 0:
            quoted = draw.choice(texts)
            length = draw.randint(10, 30)
            begin = draw.randint(0, 30 - length)
            place = draw.randint(0, len(words))
            words[place:place] = [word.upper() + "," for word in quoted[begin : begin + length]]
        documents.append(words)
    return documents


@pytest.mark.parametrize("fewest", [1, 6])
def test_documents_with_shared_runs_go(sets, fewest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, texts = sets
    monkeypatch.setattr(module, "BATCH_CHARACTERS", 3000)
    documents = corpus(texts)
    known = set().union(*map(runs, texts))
    step = Decontaminate(paths=str(folder), fewest_runs=fewest)
    for words, verdict in zip(documents, judged(step, [" ".join(words) for words in documents]), strict=True):
        own = runs([word.lower().strip(",") for word in words])
        shared = len(own & known)
        assert verdict.facts == {"runs of 13 words": len(own), "of them in evaluation sets": shared}
        assert verdict.removed == ("in an evaluation set" if shared >= fewest else "")
        if verdict.removed:
            assert verdict.detail.startswith(f"{shared} of {len(own)} runs, ")
    assert 3 < sum(len(runs([w.lower().strip(",") for w in words]) & known) >= fewest for words in documents) < 20


def test_the_file_is_named(sets) -> None:
    folder, texts = sets
    verdicts = judged(Decontaminate(paths=str(folder)), [" ".join(words) for words in texts])
    names = [verdict.detail.split(", ")[-1] for verdict in verdicts]
    assert names == ["a.txt"] + ["b.jsonl.xz"] * 3 + ["c.json.gz"] * 3 + ["d.json"] * 3


def test_only_the_paragraphs_with_a_shared_run_go(sets) -> None:
    folder, texts = sets
    draw = random.Random(2)
    mine, other, quoted = (" ".join(words) for words in (text_of(draw, 20), text_of(draw, 20), texts[3]))
    step = Decontaminate(paths=str(folder), by="paragraph")
    shortened, whole, nothing = judged(step, [f"{mine}\n{quoted}\n{other}", mine, quoted])
    assert shortened.text == f"{mine}\n{other}"
    assert whole.text == mine
    assert nothing.removed == "every paragraph in an evaluation set"


def test_where_the_sets_are_is_told(sets, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, texts = sets
    monkeypatch.delenv("WORKBENCH_EVAL", raising=False)
    (problem,) = Decontaminate().problems_here()
    assert "set $WORKBENCH_EVAL" in problem.message
    monkeypatch.setenv("WORKBENCH_EVAL", str(folder))
    assert not list(Decontaminate().problems_here())
    assert judged(Decontaminate(), [" ".join(texts[0])])[0].removed
    (problem,) = Decontaminate(paths=str(folder / "picture.png")).problems_here()
    assert "files end in .txt" in problem.message
    before = Decontaminate().key()
    (folder / "e.txt").write_text("more")
    assert Decontaminate().key() != before, "another set, other documents"
    (tmp_path / "short.txt").write_text("too short")
    with pytest.raises(DataError, match=r"no text of 1 evaluation file .short.txt. has 13 words"):
        list(Decontaminate(paths=str(tmp_path / "short.txt")).judge(documents_of(["a"])))
    (tmp_path / "bad.jsonl").write_text("{")
    with pytest.raises(DataError, match=r"bad.jsonl' cannot be read"):
        list(Decontaminate(paths=str(tmp_path / "bad.jsonl")).judge(documents_of(["a"])))


def test_paths_mean_the_same_from_every_working_folder(sets, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, _ = sets
    monkeypatch.chdir(folder)
    recipe = Recipe().with_(data={"steps": ["exact_duplicates", {"kind": "decontaminate", "paths": ["a.txt"]}]})
    first, second = recipe.located().data.steps
    assert second.paths == (str(folder / "a.txt"),)
    assert first == recipe.data.steps[0]
    assert Recipe().with_(data={"steps": ["exact_duplicates"]}).located().data.steps == (first,)
