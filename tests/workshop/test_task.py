"""Tasks: set, entered by rule, one entry for each recipe, launched again; and the board that shows them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.tiny_runs import tiny_recipe
from workbench.base.errors import RunError
from workbench.cli.command import main
from workbench.client.launch import launch
from workbench.client.listing import Listing
from workbench.client.run import Run
from workbench.lessons.record import Check, Prediction, Record, path_of
from workbench.recipes.recipe import Recipe
from workbench.store.control import write_knobs
from workbench.store.folder import RunFolder
from workbench.workshop import board as module
from workbench.workshop.board import board
from workbench.workshop.tables import board_html, board_text
from workbench.workshop.task import documents, entries, new_task, recipe_fields, task_named, tasks

FRESH = "\n\n".join(
    f"Paragraph {n} tells of boat {n * 7} that sailed past harbour {n * 13}, carried {n * 3} sacks of grain, and came "
    f"home in week {n + 2} with salt, rope, letters for house {n * 5}, and a story that nobody wrote down before."
    for n in range(20)
)


@pytest.fixture(scope="module")
def trained(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A causal run that has ended."""
    recipe = tiny_recipe(corpus, steps=6).with_(objective="causal")
    run = launch(recipe, runs_dir=tmp_path_factory.mktemp("runs"), say=None)
    run.wait(timeout=120)
    return run


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Text that nobody trains on."""
    path = tmp_path / "text.txt"
    path.write_text(FRESH, encoding="utf-8")
    return path


@pytest.mark.process
def test_a_run_is_entered_once_scored_and_can_be_launched_again(
    trained: Run, text: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = trained.folder.path.parent
    told = ["--runs", str(root), "--json"]
    assert main(["task", "new", "first", "--budget", "10 steps", "--text", str(text), *told]) == 0
    assert main(["enter", trained.id, "first", *told]) == 0
    entry = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert entry["used"] == 6
    assert entry["overlap"] == 0
    assert 0 < entry["bits_per_byte"] < 20
    assert 0 < entry["floor"] < 20
    task = task_named(root, "first")
    assert [each.run for each in entries(root, task)] == [trained.id]
    assert Recipe.model_validate(recipe_fields(root, "first", entry["recipe_hash"])).hash == trained.recipe.hash
    # Once more, it is the same entry; another run of its recipe is refused.
    assert main(["enter", trained.id, "first", *told]) == 0
    again = launch(trained.recipe, runs_dir=root, say=None)
    again.wait(timeout=120)
    capsys.readouterr()
    assert main(["enter", again.id, "first", *told]) == 2
    assert "has its entry in task 'first' already, run " in capsys.readouterr().err
    assert main(["board", *told]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["tasks"]
    assert [each["run"] for each in shown["entries"]] == [trained.id]


@pytest.mark.process
def test_what_breaks_a_rule_gets_one_sentence(trained: Run, text: Path, corpus: Path, tmp_path: Path) -> None:
    from workbench.workshop.entering import enter

    root = trained.folder.path.parent
    new_task(root, "short", "5 steps", text)
    new_task(root, "seconds", "0.001 s", text)
    new_task(root, "masks", "10 steps", text, objective="masked")
    known = tmp_path / "known.txt"
    known.write_text("\n\n".join(each.read_text() for each in sorted(corpus.rglob("*")) if each.is_file())[:60_000]
                     if corpus.is_dir() else corpus.read_text()[:60_000])  # fmt: skip
    new_task(root, "known", "10 steps", known)
    for name, said in (
        ("short", "spent 6, and task 'short' allows 5 steps"),
        ("seconds", "allows 0.001 core seconds"),
        ("masks", "objective 'causal', and task 'masks' is for 'masked'"),
        ("known", r"was trained on text of task 'known': .*% of its runs of 13 words stand in the training text"),
        ("none", r"no task 'none' in .*; there are: "),
    ):
        with pytest.raises(RunError, match=said) as error:
            enter(trained, name)
        assert "\n" not in str(error.value)
    copy = RunFolder(Path(shutil.copytree(trained.folder.path, root / f"{trained.id}-steered")))
    write_knobs(copy, [{"path": "optimizer.lr", "value": 0.5}])
    with pytest.raises(RunError, match=r"was steered \(optimizer\.lr\), so that its recipe alone does not lead"):
        enter(Run(copy), "masks")


def test_a_task_that_makes_no_sense_is_refused_and_leaves_nothing(tmp_path: Path, text: Path) -> None:
    for name, budget, file, said in (
        ("A task", "60 s", text, "a name has small letters"),
        ("t", "60 bananas", text, "write '60 seconds', '600 steps'"),
        ("t", "60 s", tmp_path / "none", "cannot be read as UTF-8"),
    ):
        with pytest.raises(RunError, match=said):
            new_task(tmp_path / "runs", name, budget, file)
    (tmp_path / "short.txt").write_text("too short")
    with pytest.raises(RunError, match="has 9 characters"):
        new_task(tmp_path / "runs", "t", "60 s", tmp_path / "short.txt")
    assert not (tmp_path / "runs").exists()
    task = new_task(tmp_path / "runs", "t", "60 s", text, title="Lowest")
    assert (task.budget, [each.name for each in tasks(tmp_path / "runs")]) == ("60 core seconds", ["t"])
    with pytest.raises(RunError, match="there is a task 't' already"):
        new_task(tmp_path / "runs", "t", "60 s", text)
    assert "".join(documents(tmp_path / "runs", task)).count("Paragraph") == 20
    assert Listing(tmp_path / "runs").look().rows == [], "tasks and lessons are no runs"


def test_the_board_has_owners_answers_and_says_what_is_missing(tmp_path: Path) -> None:
    assert board(tmp_path, [])["notes"] == [
        f"no runs in {tmp_path} yet: `wb.launch(...)` or a Lab starts one, and it stands here at once"
    ]
    for learner, value in (("ada", "B"), ("ben", "A")):
        made = Prediction(question="Which?", value=value, made_at=1.0, outcome="B", right=value == "B")
        check = Check(question="Which floor?", tries=2, right=True)
        record = Record(lesson="did_it_learn", learner=learner, predictions={"which": made}, checks={"floor": check})
        record.write(path_of(tmp_path, "did_it_learn", learner))
    rows = []
    for place, (owner, status, loss) in enumerate(
        (("ada", "finished", 4.0), ("ada", "running", 3.5), ("ben", "queued", None))
    ):
        rows.append(_row(tmp_path, f"2026010{place}-000000-a", owner, status, loss))
    found = board(tmp_path, rows)
    ada, ben = found["owners"]
    assert [run["status"] for run in ada["runs"]] == ["running", "finished"]
    assert (ada["train"], ada["ended"], ada["best"]) == (1, 1, 4.0), "a running one may be scored in part"
    assert (ben["owner"], ben["wait"], found["notes"]) == ("ben", 1, [])
    text, page = board_text(found), board_html(found)
    assert "B, came out B: right" in text
    assert "A, came out B: wrong" in text
    assert "right at try 2" in page
    assert ("finished" in text, "finished" in board_text(found, every_run=True)) == (False, True)


def test_the_board_names_no_best_of_losses_that_do_not_compare(tmp_path: Path) -> None:
    rows = [_row(tmp_path, f"2026010{n}-000000-a", "ada", "finished", 4.0 - n) for n in range(2)]
    for row, sha in zip(rows, "xx", strict=True):
        _scored_on(tmp_path / row["id"], sha)
    assert board(tmp_path, rows)["owners"][0]["best"] == 3.0
    _scored_on(tmp_path / rows[1]["id"], "y")
    assert board(tmp_path, rows)["owners"][0]["best"] is None


def _scored_on(run: Path, sha: str) -> None:
    data = {"sources": {"files": sha}, "split": {}, "heldout": {"sha256": sha}, "tokenizer_sha256": "t"}
    RunFolder(run).environment.write_text(json.dumps({"data": data}))


def test_two_accounts_of_one_name_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [_row(tmp_path, f"2026010{n}-000000-a", "ada", "finished", 4.0) for n in range(2)]
    uids = iter((1001, 1002))
    monkeypatch.setattr(module, "_account_of", lambda run: next(uids))
    (note,) = board(tmp_path, rows)["notes"]
    assert note == "2 accounts launch runs as 'ada': each sets $WORKBENCH_OWNER to a name of its own"


def _row(root: Path, run_id: str, owner: str, status: str, loss: float | None) -> dict[str, object]:
    (root / run_id).mkdir()
    facts = {"name": "mine", "progress": 0.5, "message": "", "launched": 1.0, "queue_position": None}
    return {"id": run_id, "owner": owner, "status": status, "heldout_loss": loss, **facts}
