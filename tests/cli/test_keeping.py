"""Names, tags, notes and the trash through the command line."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest

from workbench.cli.command import main
from workbench.store.folder import RunFolder, write_json
from workbench.store.state import take_lock, write_state


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunFolder:
    """A run that has ended, in the runs folder of the environment."""
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path))
    folder = RunFolder(tmp_path / "20260101-000000-a-000000-0000")
    folder.path.mkdir()
    write_json(folder.recipe, {"name": "mine"})
    write_state(folder, status="finished")
    return folder


def test_a_run_is_renamed_and_found_by_its_new_name(ended: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rename", ended.id, "Best so far"]) == 0
    assert main(["rename", "Best so far"]) == 0
    assert capsys.readouterr().out == "Best so far\n" * 2
    assert main(["runs"]) == 0
    assert "Best so far" in capsys.readouterr().out
    assert main(["note", "Best so far", "as hoped", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"] == ended.id
    assert main(["stop", "best so far"]) == 2
    assert "nearest: 'Best so far'" in capsys.readouterr().err
    assert main(["rename", ended.id, "two\nlines"]) == 2
    assert "is no name for a run" in capsys.readouterr().err
    assert main(["rename", ended.id, "", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"run": ended.id, "name": "mine"}


def test_tags_are_added_and_removed_in_any_order(ended: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    for changes, left in (
        (["+a", "-b", "+c"], "a c"), (["-a", "d"], "c d"), (["--json", "-c", "+é"], '"d", "'), ([], "d é"),
    ):  # fmt: skip
        assert main(["tag", ended.id, *changes]) == 0
        assert left in capsys.readouterr().out
    assert main(["tag", ended.id, "+x", "--nosuch"]) == 2
    assert "unrecognized arguments: --nosuch" in capsys.readouterr().err
    assert main(["tag", ended.id, "+two words"]) == 2
    assert "is not a tag" in capsys.readouterr().err
    assert main(["stop", ended.id, "-x"]) == 2
    assert "unrecognized arguments: -x" in capsys.readouterr().err


def test_runs_are_listed_by_tag(ended: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    main(["tag", ended.id, "+good"])
    capsys.readouterr()
    assert main(["runs", "--tag", "good", "--json"]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert (run["tags"], run["notes"], run["parent"]) == (["good"], "", None)
    assert main(["runs", "--tag", "good", "--tag", "bad"]) == 0
    assert "no runs" in capsys.readouterr().out


def test_notes_are_written_and_printed(ended: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["note", ended.id, "two\nlines"]) == 0
    assert main(["note", ended.id]) == 0
    assert capsys.readouterr().out == "two\nlines\n" * 2
    assert main(["note", ended.id, "", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"run": ended.id, "notes": ""}


class Terminal(io.StringIO):
    """Standard input with somebody at it."""

    def isatty(self) -> bool:
        return True


def test_deleting_asks_and_nothing_is_lost(
    ended: RunFolder, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("no\n"))
    assert main(["delete", ended.id]) == 1
    assert f"Move {ended.id} (mine) to the trash? [y/N]" in capsys.readouterr().err
    assert ended.path.exists()
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    assert main(["delete", ended.id]) == 0
    assert main(["trash"]) == 0
    assert f"{ended.id}  mine" in capsys.readouterr().out
    assert main(["restore", ended.id[:10], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["run"] == ended.id
    assert ended.path.exists()


def test_without_a_terminal_yes_is_needed(ended: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["delete", ended.id]) == 2
    assert "pass --yes" in capsys.readouterr().err
    assert main(["delete", ended.id, "--yes", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"deleted": [ended.id]}
    assert main(["trash", "--empty"]) == 2
    assert main(["trash", "--empty", "--yes"]) == 0
    capsys.readouterr()
    assert main(["trash", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"runs": []}
    assert main(["restore", ended.id]) == 2


def test_a_live_run_is_not_deleted(ended: RunFolder, capsys: pytest.CaptureFixture[str]) -> None:
    lock = take_lock(ended)
    assert main(["delete", ended.id, "--yes"]) == 2
    os.close(lock)
    assert "is alive" in capsys.readouterr().err
    assert ended.path.exists()
