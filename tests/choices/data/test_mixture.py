"""A mixture: what it takes, how its parts are prepared, which rows and scores they give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from workbench.base.errors import DataError, RecipeError
from workbench.choices.data import Files, Mixture
from workbench.choices.data.mixture_order import MixtureOrder
from workbench.choices.data.order import shuffled
from workbench.choices.data.prepare import prepare
from workbench.choices.data.repeats import RUN_WORDS, Repeats
from workbench.choices.data.tokens import PreparedData, TokenStore
from workbench.choices.objectives.heldout import HeldoutSet
from workbench.recipes.recipe import Recipe

SMALL: dict[str, Any] = {
    "tokenizer": {"kind": "trained", "vocabulary_size": 256}, "sequence_length": 16, "batch_size": 4,
    "heldout_fraction": 0.2,
}  # fmt: skip


def quiet(line: str) -> None:
    """Say nothing."""


def write(path: Path, texts: list[str]) -> dict[str, Any]:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return {"kind": "files", "paths": [str(path)]}


@pytest.fixture
def sources(tmp_path: Path, sentences: Any) -> list[dict[str, Any]]:
    texts = sentences(400)
    return [write(tmp_path / "a.jsonl", texts[:250]), write(tmp_path / "b.jsonl", texts[250:])]


def mixture(sources: list[dict[str, Any]], **changes: Any) -> Mixture:
    parts = [{"name": name, "source": source} for name, source in zip("abcdef", sources, strict=False)]
    return Mixture(**{"parts": parts, **SMALL, **changes})


def texts_of(prepared: PreparedData, store: TokenStore) -> list[str]:
    tokenizer = Tokenizer.from_file(prepared.tokenizer_file)
    return [tokenizer.decode(store.ids_N[begin:end].tolist())
            for begin, end in zip(store.offsets_D1, store.offsets_D1[1:], strict=False)]  # fmt: skip


def test_a_part_is_split_as_it_would_be_alone(sources: list[dict[str, Any]], sentences: Any) -> None:
    data = mixture(sources)
    prepared = prepare(data, quiet)
    texts = {"a": sentences(400)[:250], "b": sentences(400)[250:]}
    for (name, part), source in zip(prepared.parts.items(), sources, strict=True):
        alone = prepare(Files(**{**source, **SMALL}), quiet)
        held = texts_of(prepared, prepared.heldout.part(part.heldout))
        assert held == texts_of(alone, alone.heldout)
        trained = texts_of(prepared, prepared.train.part(part.train))
        assert sorted(trained + held) == sorted(texts[name])
    assert prepared.fingerprint["parts"]["a"]["train"]["documents"] == prepared.parts["a"].train.stop
    # Neither weights nor names decide a token.
    parts = [{"name": "x", "source": sources[0], "weight": 9}, {"name": "y", "source": sources[1]}]
    other = mixture(sources, parts=parts)
    assert prepare(other, quiet).fingerprint["key"] == prepared.fingerprint["key"]


def test_one_part_alone_gives_the_rows_of_its_source(sources: list[dict[str, Any]]) -> None:
    """The oracle: a mixture of one is that one."""
    single = Files(**{**sources[0], **SMALL})
    mixed = mixture(sources[:1])
    samples = np.arange(500)
    alone = single.row_order(prepare(single, quiet), 7).batch(samples)
    batch = mixed.row_order(prepare(mixed, quiet), 7).batch(samples)
    assert all(torch.equal(one, other) for one, other in zip(alone, batch, strict=True))


def test_a_parts_rows_are_its_own(sources: list[dict[str, Any]]) -> None:
    data = mixture(sources)
    prepared = prepare(data, quiet)
    order = data.row_order(prepared, 3)
    assert isinstance(order, MixtureOrder)
    part_B, local_B = order.locate(np.arange(300))
    batch = order.batch(np.arange(300))
    for number, rows in enumerate(order.parts.values()):
        assert torch.equal(batch.tokens_BT[part_B == number], rows.batch(local_B[part_B == number]).tokens_BT)
        assert rows.store.documents == len(list(prepared.parts.values())[number].train)


def test_no_document_is_trained_on_and_held_out(tmp_path: Path, sentences: Any) -> None:
    """Also where one part's held-out text stands in another part."""
    texts = sentences(400)
    held_out = write(tmp_path / "h.jsonl", texts[100:130])["paths"]
    first = {**write(tmp_path / "a.jsonl", texts[:100]), "heldout_paths": held_out}
    # The second part trains on some of the first one's held-out documents as they are, and on some within others.
    joined = [" ".join(texts[start : start + 2]) for start in range(110, 115)]
    second = write(tmp_path / "b.jsonl", [*texts[100:105], *joined, *texts[200:]])
    prepared = prepare(mixture([first, second]), quiet)
    trained, held = (texts_of(prepared, store) for store in (prepared.train, prepared.heldout))
    assert not set(trained) & set(held)
    assert set(texts[100:105]) <= set(held), "those documents left the training text"
    long = {text for text in texts[110:115] if len(text.split()) >= RUN_WORDS}
    assert long
    assert not long & set(held), "and these the held-out text"
    repeats = Repeats(held)
    list(repeats.watch(trained))
    assert repeats.share == prepared.fingerprint["heldout_overlap"] == 0
    assert prepared.fingerprint["heldout_overlap_before"] > 0


def test_steps_see_the_text_of_all_parts(sources: list[dict[str, Any]], sentences: Any, tmp_path: Path) -> None:
    copies = write(tmp_path / "c.jsonl", [*sentences(400)[:50], *sentences(60, seed=1)])
    prepared = prepare(mixture([*sources, copies], steps=["exact_duplicates"]), quiet)
    (step,) = prepared.fingerprint["preparation"]
    assert step["removed"] == 50
    sizes = [
        part["train"]["documents"] + part["heldout"]["documents"] for part in prepared.fingerprint["parts"].values()
    ]
    assert sizes == [250, 150, 60]


def test_held_out_losses_are_of_the_parts_tokens(sources: list[dict[str, Any]], tmp_path: Path) -> None:
    prepared = prepare(mixture(sources), quiet)
    parts = {name: part.heldout for name, part in prepared.parts.items()}
    heldout = HeldoutSet.of(prepared.heldout, prepared.vocabulary, 1 << 20, causal=True, parts=parts)
    assert (sum(part_S.astype(int) for part_S in heldout.parts.values()) == 1).all()
    order_D = shuffled(0, 0, 0, prepared.heldout.documents)
    for place, document in zip(heldout.scored_S, heldout.document_N[heldout.scored_S], strict=True):
        (name,) = (name for name, part in parts.items() if order_D[document] in part)
        assert heldout.parts[name][np.searchsorted(heldout.scored_S, place)]
    heldout.save(tmp_path / "heldout.npz")
    again = HeldoutSet.load(tmp_path / "heldout.npz", prepared.vocabulary)
    assert all(np.array_equal(again.parts[name], heldout.parts[name]) for name in parts)
    half = heldout.part(2)
    assert [len(part_S) for part_S in half.parts.values()] == [len(half.scored_S)] * 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parts": []}, "at least 1 item"),
        ({"parts": [{"name": "a", "source": "embedded", "weight": -1}]}, "must be >= 0 at all times, got -1"),
        ({"parts": [{"name": "a", "source": "embedded", "weight": 0}]}, "the weights of parts sum to nothing; one"),
        ({"parts": [{"name": "a", "source": "embedded", "epochs": 0}]}, "greater than 0"),
        ({"parts": [{"name": "a", "source": "embedded", "epoch": 2}]}, "did you mean 'epochs'"),
        ({"parts": [{"name": "a", "source": "embeded"}]}, "did you mean 'embedded'"),
        ({"parts": [{"name": "a/b", "source": "embedded"}]}, "data.parts.0.name"),
        ({"parts": [{"name": "a", "source": {"kind": "files", "paths": ["x"], "batch_size": 2}}]},
         "part 'a' sets batch_size, which a mixture has once: set data.batch_size"),
        ({"parts": [{"name": "a", "source": "mixture"}]}, "'a' is a mixture again; list its parts here"),
        ({"parts": [{"name": "a", "source": "embedded"}] * 2}, "two parts are named 'a'"),
        ({"parts": [{"name": "a", "source": "embedded"}, {"name": "b", "source": "embedded", "weight": 3}]},
         "'a' and 'b' are the same text; keep one, with the sum of the weights"),
        ({"parts": [{"name": "a", "source": "embedded", "weight": "linear"}]},
         "span_tokens: the weight of part 'a' moves"),
        ({"parts": [{"name": "a", "source": "embedded", "weight": {"kind": "linear", "over": "steps"}}]},
         "counts steps; rows follow from tokens alone"),
        ({"span_tokens": 100, "parts": [{"name": "a", "source": "embedded",
          "weight": {"kind": "linear", "start": 1, "end": 0}}]}, "sum to nothing after 100% of span_tokens"),
    ],
)  # fmt: skip
def test_mixtures_that_cannot_be_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError) as refused:
        Recipe(data={"kind": "mixture", **changes})
    assert message in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_a_dataset_that_appears_twice_is_told(tmp_path: Path, sentences: Any) -> None:
    """Under another name: a copy of some of it, in another order."""
    texts = sentences(300)
    sources = [write(tmp_path / "a.jsonl", texts), write(tmp_path / "b.jsonl", [*texts[149::-1], *sentences(50, 7)])]
    said: list[str] = []
    prepared = prepare(mixture(sources), said.append)
    (line,) = (line for line in said if "also stand" in line)
    trained = texts_of(prepared, prepared.train)
    first, second = (trained[part.train.start : part.train.stop] for part in prepared.parts.values())
    shared = len({*first} & {*second})
    assert shared > 100
    assert line.startswith(f"{shared} of {len(second)} documents of part 'b' also stand in part 'a'")


def test_a_dataset_that_was_copied_is_told(tmp_path: Path, sentences: Any) -> None:
    paths = tuple(write(tmp_path / f"{name}.jsonl", sentences(200))["paths"][0] for name in "ab")
    said: list[str] = []
    prepare(Files(paths=paths, **SMALL), said.append)
    (line,) = (line for line in said if "stand in the text before" in line)
    number, _, documents = line.split()[:3]
    assert int(documents) == 2 * int(number) > 200
    prepare(Files(paths=paths, steps=("exact_duplicates",), **SMALL), said.append)
    assert sum("stand in the text before" in line for line in said) == 1


def test_a_part_without_text_is_named(sources: list[dict[str, Any]], tmp_path: Path) -> None:
    empty = write(tmp_path / "c.jsonl", ["", "  "])
    with pytest.raises(DataError, match="part 'c' holds no text, and one row needs 16"):
        prepare(mixture([*sources, empty]), quiet)
    missing = {"kind": "files", "paths": [str(tmp_path / "none.txt")]}
    (problem,) = mixture([*sources, missing]).problems_here()
    assert str(problem).startswith("data.parts: part 'c': paths: no such file")


def test_a_budget_beyond_every_parts_epochs_is_refused(sources: list[dict[str, Any]]) -> None:
    parts = [{"name": name, "source": source, "epochs": 2} for name, source in zip("ab", sources, strict=True)]
    recipe = Recipe(data=mixture(sources, parts=parts), budget="100 steps")
    prepared = prepare(recipe.data, quiet)
    rows = sum(prepared.train.part(part.train).tokens // 16 for part in prepared.parts.values())
    with pytest.raises(DataError, match=f"used up after {2 * rows * 16:,} tokens"):
        recipe.with_(budget="1M tokens").data.check_budget(prepared, recipe.with_(budget="1M tokens"))
    few = recipe.with_(budget="4 steps")
    few.data.check_budget(prepared, few)


def test_it_reads_back_with_absolute_paths_and_without_knobs_of_parts(tmp_path: Path, monkeypatch: Any) -> None:
    write(tmp_path / "a.jsonl", ["x"])
    monkeypatch.chdir(tmp_path)
    recipe = Recipe(data={"kind": "mixture", "parts": [
        {"name": "a", "source": {"kind": "files", "paths": "a.jsonl"}}, {"name": "b", "source": "embedded"},
    ]})  # fmt: skip
    written = recipe.located().to_dict()["data"]["parts"]
    assert written[0]["source"]["paths"] == [str(tmp_path / "a.jsonl")]
    assert "tokenizer" not in written[0]["source"]
    assert Recipe.from_json(recipe.located().to_json()).located() == recipe.located()
