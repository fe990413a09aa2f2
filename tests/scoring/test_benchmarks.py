"""Every benchmark against a slow loop over its items, its baselines by hand, and bad files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.scoring.conftest import PAIRS, write
from tests.scoring.test_reader import reader, slow
from workbench.base.errors import DataError
from workbench.client.run import Run
from workbench.plots.report import report_html
from workbench.scoring import evaluation_files
from workbench.scoring.benchmark import score
from workbench.scoring.evaluation_files import Source, items
from workbench.scoring.multiple_choice import Question, baselines
from workbench.scoring.reader import Reader
from workbench.store.view import RunView

__all__ = ["reader"]
pytestmark = pytest.mark.process


def test_blimp_equals_a_slow_loop(run: Run, reader: Reader, data: Path) -> None:
    shares: dict[str, list[float]] = {}
    for number, (good, bad, group) in enumerate(PAIRS):
        ours, theirs = (slow(reader, ((), reader.ids(text))) for text in (good, bad))
        # Warstadt et al.: the share of pairs, in each paradigm; ours counts ties half.
        shares.setdefault(f"{group}_{number % 2}", []).append((np.sign(ours - theirs) + 1) / 2)
    by_paradigm = {name: float(np.mean(each)) for name, each in shares.items()}
    found = score(run.folder, "blimp", data=data)
    assert found["blimp"].value == pytest.approx(np.mean(list(by_paradigm.values())))
    agreement = np.mean([value for name, value in by_paradigm.items() if name.startswith("agreement")])
    assert found["blimp/agreement"].value == pytest.approx(agreement)
    assert found.keys() == {"blimp", "blimp/agreement", "blimp/npi"}
    assert found["blimp"].count == len(PAIRS)
    assert found["blimp"].beside.keys() == {"untrained", "chance", "word frequencies"}
    assert ("pseudo" in found["blimp"].note) is not reader.causal
    page = report_html([RunView.read(run.folder)])
    assert "blimp" in page
    assert "untrained" in page


def test_continuations_equal_a_slow_loop(run: Run, reader: Reader, data: Path) -> None:
    found = score(run.folder, ["copa", "arc_easy", "lambada"], data=data)
    asked = [
        ("The man fell because", [" he was pushed.", " he ran."], 0),
        ("It rained therefore", [" the sun was hot.", " the road was wet."], 1),
    ]
    plain, by_character = [], []
    for context, choices, right in asked:
        nats = [slow(reader, pair) for pair in reader.pairs([(context, choice) for choice in choices])]
        plain.append(int(np.argmax(nats)) == right)
        by_character.append(
            int(np.argmax([each / len(c.strip()) for each, c in zip(nats, choices, strict=True)])) == right
        )
    assert found["copa"].value == np.mean(plain)
    assert found["copa.per_character"].value == np.mean(by_character)
    assert found["arc_easy"].count == 1, "of its split alone"
    words = reader.pairs([("he came to the old house and opened the old", " house"), ("she looked at him and said his",
                                                                                     " name")])  # fmt: skip
    nats = [slow(reader, pair, at_once=True) for pair in words]
    assert found["lambada.perplexity"].value == pytest.approx(np.exp(-np.mean(nats)), rel=1e-4)


def test_baselines_need_no_model() -> None:
    questions = [Question("a red cat", (" a red cat", " blue"), 0), Question("x", (" y", " z", " u", " v"), 3)]
    assert baselines(questions) == {"chance": 0.375, "majority": 0.5, "overlap": pytest.approx((1 + 0.25) / 2)}


def test_text_that_training_had_is_said_with_its_share(run: Run, data: Path, tmp_path: Path) -> None:
    path = Path(json.loads(run.folder.recipe.read_text())["data"]["paths"][0])
    seen = " ".join(path.read_text().split()[40:60])
    unseen = " ".join(f"novel{number}" for number in range(20))
    write(tmp_path / "blimp.jsonl", [
        {"UID": "a", "linguistics_term": "b", "sentence_good": seen, "sentence_bad": unseen},
        {"UID": "a", "linguistics_term": "b", "sentence_good": "short", "sentence_bad": "shorter"},
    ])  # fmt: skip
    note = score(run.folder, "blimp", data=tmp_path)["blimp"].note
    assert "1 of the 2 texts that long (50.0%) share 13 words in a row with the training text" in note


def test_files_say_what_is_wrong_with_them(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Source(("some*.jsonl",), fields=(frozenset({"goal", "label"}),))
    with pytest.raises(
        DataError,
        match=r"no file some\*.jsonl in .* name the folder that has it: in the Lab `.* in FOLDER`, elsewhere --data",
    ):
        items("some", source, tmp_path)
    write(tmp_path / "some.jsonl", [{"goal": "x", "answer": 1}])
    with pytest.raises(DataError, match=r"needs the fields goal, label; an item of .* has answer, goal"):
        items("some", source, tmp_path)
    (tmp_path / "some.jsonl").write_text("{")
    with pytest.raises(DataError, match="cannot be read as JSON lines"):
        items("some", source, tmp_path)
    monkeypatch.delenv("WORKBENCH_EVAL", raising=False)
    with pytest.raises(DataError, match="'some' is not on the Hugging Face Hub; name a folder"):
        items("some", source, None)
    monkeypatch.setattr(evaluation_files, "hub_answers", lambda name: False)
    with pytest.raises(DataError, match=r"Hub did not answer; name a folder that has some\*.jsonl: in"):
        items("some", replace(source, hub="owner/some"), None)
    monkeypatch.setenv("WORKBENCH_EVAL", str(data))
    assert len(items("copa", Source(("copa*.jsonl",), fields=(frozenset({"premise"}),)), None)) == 2
