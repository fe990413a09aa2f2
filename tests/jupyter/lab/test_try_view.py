"""The watched models are asked from the Lab, by another thread and the process beside the kernel."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.corpus import CYCLE
from tests.jupyter.messages import hear, say
from tests.seen.test_rows import written
from tests.tiny_runs import tiny_recipe, wait_until
from workbench.client.asking import fill, generate
from workbench.client.fork_point import steps_of
from workbench.client.launch import launch
from workbench.client.run import Run
from workbench.jupyter.lab import try_view
from workbench.jupyter.lab.lab import Lab
from workbench.jupyter.lab.try_view import TryView, spread
from workbench.recipes.recipe import Recipe
from workbench.seen.asked import rows

pytestmark = pytest.mark.process
TEXT, PROMPT = "the [MASK] of the house", "the house"
KNOBS = {"tokens": 4, "temperature": 0.5, "top_k": 3, "seed": 1}


@pytest.fixture(scope="module")
def runs(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """A masked and a causal run, each with the checkpoints of its last two steps."""
    root, made = tmp_path_factory.mktemp("runs"), []
    for objective in ("masked", "causal"):
        recipe = tiny_recipe(corpus, steps=4, name=objective).with_(
            objective=objective, budget={"checkpoint_seconds": 1e-6}
        )
        made.append(launch(recipe, on="inline", runs_dir=root))
        made[-1].wait()
    assert [steps_of(run.folder) for run in made] == [[4, 3], [4, 3]]
    return made


@pytest.fixture
def view() -> Iterator[TryView]:
    made = TryView()
    _ = made.model_id
    yield made
    made.close()


def asked(view: TryView, heard: list[dict[str, Any]], ask: int, text: str, *at: tuple[str, int | None]) -> list[Any]:
    say(view, {"ask": ask, "text": text, "at": at, **KNOBS})

    def answers() -> list[Any]:
        return [each for each in heard if each["answered"] == ask]

    wait_until(lambda: len(answers()) == len(at), what="the answers")
    return answers()


def test_two_runs_answer_side_by_side(view: TryView, runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    masked, causal = runs
    heard = hear(view, monkeypatch)
    view.offer(runs)
    assert [(each["name"], each["steps"]) for each in view.runs] == [("masked", [3, 4]), ("causal", [3, 4])]
    assert view.chosen == [masked.id, causal.id]
    first, second = asked(view, heard, 7, TEXT, (masked.id, 3), (causal.id, None))
    assert (first["place"], first["step"], first["words"]) == (0, 3, fill(masked, TEXT, step=3).words)
    assert second["place"] == 1
    assert "reads a text from the left alone" in second["error"]
    first, second = asked(view, heard, 8, PROMPT, (masked.id, None), (causal.id, None))
    assert "continues no text" in first["error"]
    assert (second["step"], second["text"]) == (4, generate(causal, PROMPT, **KNOBS).text)
    view.offer([causal])
    assert view.chosen == [causal.id]


def test_what_is_pinned_is_asked_at_every_checkpoint_and_stays_known(
    view: TryView, runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / runs[0].id
    shutil.copytree(runs[0].folder.path, copy)
    masked, causal, threads = Run(copy), runs[1], set()
    monkeypatch.setattr(try_view, "fill", lambda *a, **k: (threads.add(threading.current_thread()), fill(*a, **k))[1])
    view.offer([masked, causal])
    view.pinned = [TEXT]
    assert view.over == [], "nothing is loaded for a view that nobody has opened"
    view.shown = True
    expected = [(step, *fill(masked, TEXT, step=step, top=1).words[0]) for step in (3, 4)]
    wait_until(lambda: view.over[0]["rows"] == expected and view.over[1]["error"], what="the answers")
    assert "from the left alone" in view.over[1]["error"]
    assert threading.main_thread() not in threads
    view.pinned = [TEXT, PROMPT]
    wait_until(lambda: len(view.over[3]["rows"]) == 2, what="the continuations")
    assert view.over[3]["rows"][1] == (4, generate(causal, PROMPT, 8, temperature=0).text, None)
    # A run that trains on deletes its older checkpoints.
    shutil.rmtree(masked.folder.checkpoints / "step-3")
    view.shown = False
    view.look()
    assert view.runs[0]["steps"] == [4]
    assert view.over[0]["rows"] == expected
    view.pinned = []
    assert view.over == []


def test_many_checkpoints_are_thinned_and_the_newest_is_asked() -> None:
    steps = list(range(10, 1010, 10))
    assert len(spread(steps, 24)) == 13 + 1, "every eighth, and the newest"
    assert spread(steps, 24)[-1] == 1000
    assert set(spread(steps, 24)[:-1]) <= set(spread([*steps, 1010], 24))
    assert spread([], 24) == []


def test_the_lab_keeps_what_is_pinned_and_offers_what_is_watched(runs: list[Run]) -> None:
    lab = Lab(runs_dir=runs[0].folder.path.parent, live=True)
    again = Lab(runs_dir=runs[0].folder.path.parent, live=True)
    try:
        lab.try_view.pinned = [TEXT]
        lab.table.watched = [run.id for run in runs]
        assert [each["id"] for each in lab.try_view.runs] == [run.id for run in runs]
        again.restore(lab.kept)
        assert again.try_view.pinned == [TEXT]
        assert again.try_view.chosen == [run.id for run in runs]
    finally:
        lab.close()
        again.close()


def test_rows_are_shown_where_no_server_tells(view: TryView, runs: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    view.offer(runs)
    heard = hear(view, monkeypatch)
    for read, query in enumerate(({"step": 3, "rows": 1}, {"step": 99})):
        say(view, {"read": read, "run": runs[1].id, "what": "rows", "query": query})
    wait_until(lambda: len(heard) == 2, what="the rows")
    answers = {each["read"]: each for each in heard}
    assert answers[0]["rows"][0]["step"] == 3
    assert "beyond the last, which is 3" in answers[1]["error"]


def test_a_composed_recipe_shows_its_rows_once_its_text_is_prepared(
    runs: list[Run], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = written(tmp_path / "other.jsonl", [f"{' '.join(CYCLE)} {n}" for n in range(60)])
    recipe = tiny_recipe(other, steps=40, name="composed")
    composed: list[Recipe | None] = [recipe, None]
    view = TryView(composed=lambda: composed[0])
    view.compose()
    _ = view.model_id
    heard = hear(view, monkeypatch)
    for read, (what, query) in enumerate((("facts", {}), ("prepare", {}), ("rows", {"step": 39}))):
        say(view, {"read": read, "run": "", "what": what, "query": query})
    wait_until(lambda: [each["read"] for each in heard if "said" not in each] == [0, 1, 2], what="the answers")
    assert view.recipe == {"name": "composed", "hash": recipe.hash}
    composed.pop(0)
    view.compose()
    assert view.recipe == {"name": "composed", "hash": ""}
    say(view, {"read": 3, "run": "", "what": "facts", "query": {}})
    wait_until(lambda: heard[-1]["read"] == 3, what="the refusal")
    assert "cannot run" in heard.pop()["error"]
    view.close()
    assert any("turning the text into tokens" in each.get("said", "") for each in heard)
    heard = [each for each in heard if "said" not in each]
    assert "not prepared yet" in heard[0]["unprepared"]
    assert heard[1]["steps"] == [0, 0, 40]
    assert heard[2]["rows"] == json.loads(json.dumps(rows(recipe, 39, say=lambda line: None).to_dict()["rows"]))
