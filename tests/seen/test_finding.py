"""A text is traced to the rows that training reads, to the held-out text, and to the step that left it out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.corpus import CYCLE
from tests.seen.test_rows import LENGTHS, written
from tests.tiny_runs import tiny_recipe
from workbench.base.errors import DataError
from workbench.cli.command import main
from workbench.client.launch import launch
from workbench.recipes.recipe import Recipe
from workbench.seen.asked import rows
from workbench.seen.finding import find_text, spellings
from workbench.seen.rows import Reader

SENTENCE = "the old lighthouse keeper lit his lamp"


@pytest.fixture
def recipe(tmp_path: Path) -> Recipe:
    """300 documents of words in a cycle; one holds the sentence, and stands there twice."""
    texts = [" ".join(CYCLE[(n * k) % 20] for k in range(1, 60)) + f" number {n}" for n in range(300)]
    texts[7] = f"{' '.join(CYCLE)} {SENTENCE} {' '.join(CYCLE[::-1])}"
    texts.insert(50, texts[7])
    data = {"steps": [{"kind": "exact_duplicates"}], **LENGTHS}
    return tiny_recipe(written(tmp_path / "texts.jsonl", texts), steps=300, name="traced").with_(data=data)


def test_a_text_is_read_at_exactly_the_steps_whose_rows_hold_it(recipe: Recipe) -> None:
    reader = Reader(recipe, None, lambda line: None)
    [place] = find_text(reader, SENTENCE).places
    store, pattern = reader.prepared.train, spellings(reader, SENTENCE)[0]
    begin = int(store.offsets_D1[place.document]) + place.offset
    assert store.ids_N[begin : begin + len(pattern)].tolist() == pattern.tolist()
    wanted, expected = set(range(begin, begin + len(pattern))), set()
    for step in range(300):
        at = reader.course.at(step)
        order = reader.order.of_length(at.length)
        first = order.first_sample(at.progress.tokens)
        for row, places_T in enumerate(order.places(np.arange(first, first + at.rows)).tolist()):
            if wanted & set(places_T):
                expected.add((step, row))
    assert {(each.step, each.place) for each in place.readings} == expected
    assert len(expected) == place.planned > 3
    assert place.times == 0


@pytest.mark.process
def test_a_run_says_what_it_has_read_and_why_a_document_was_left_out(
    recipe: Recipe, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    run = launch(
        recipe.with_(budget="3 steps", data={"sequence_length": 32, "batch_size": 8}), on="inline", runs_dir=runs
    )
    run.wait()
    found = rows(run, find=SENTENCE, say=lambda line: None)
    assert (found.done, found.total) == (3, 1)
    assert "lighthouse" in found.places[0].text
    assert all(each.past == (each.step < 3) for each in found.places[0].readings)
    [removed] = found.removed
    assert (removed["kind"], removed["number"]) == ("exact_duplicates", 50)
    assert "left out by step 'exact_duplicates'" in str(found)
    assert "left out by step &#x27;exact_duplicates&#x27;" in found._repr_html_()

    assert main(["rows", run.id, "--runs", str(runs), "--find", SENTENCE, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(found.to_dict()))
    assert main(["rows", run.id, "--runs", str(runs), "--step", "2", "--rows", "1"]) == 0
    assert "has read 8 rows of 32 tokens at step 2" in capsys.readouterr().out
    recipe.save(tmp_path / "recipe.json")
    assert main(["rows", str(tmp_path / "recipe.json"), "--step", "500"]) == 2
    assert "beyond the last, which is 299" in capsys.readouterr().err


def test_heldout_text_is_never_read_and_nothing_is_found_where_there_is_nothing(recipe: Recipe) -> None:
    reader = Reader(recipe, None, lambda line: None)
    store = reader.prepared.heldout
    ids = store.ids_N[int(store.offsets_D1[0]) + 1 : int(store.offsets_D1[1]) - 1].tolist()
    found = find_text(reader, reader.tokenizer.decode(ids))
    assert [place.split for place in found.places] == ["heldout"]
    assert "never: models are scored on it" in str(found)
    nothing = find_text(reader, "xylophone quagmire")
    assert (nothing.total, nothing.places, nothing.removed) == (0, (), ())
    assert "stands nowhere" in str(nothing)
    with pytest.raises(DataError, match="nothing to look for"):
        find_text(reader, " ")
