"""A run that ended early says which file of its text is gone; others are not looked after."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from workbench.client.listing import Listing
from workbench.client.summary import summary
from workbench.store.folder import RunFolder, write_json
from workbench.store.missing_text import LOOKED_AT, NamedText
from workbench.store.state import RunState, write_state

GONE = ["stopped", "failed", "lost"]


def made(root: Path, data: Any, status: str = "stopped") -> RunFolder:
    folder = RunFolder(root / "20260101-000000-a")
    folder.path.mkdir(parents=True)
    write_json(folder.recipe, {"name": "a", "data": data})
    write_json(folder.launched, {"on": "local", "folder": str(root)})
    write_state(folder, status=status)
    return folder


def missing(folder: RunFolder, status: str = "stopped", **state: Any) -> str:
    return NamedText(folder).missing(RunState(status=status, **state), status)


@pytest.mark.parametrize("status", GONE)
def test_a_path_that_is_gone_is_named_as_the_recipe_names_it(tmp_path: Path, status: str) -> None:
    (tmp_path / "notes").mkdir()
    folder = made(tmp_path, {"kind": "files", "paths": ["notes"], "heldout_paths": ["kept/held.txt"]}, status)
    assert missing(folder, status) == "kept/held.txt"
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "held.txt").write_text("text")
    assert missing(folder, status) == ""
    (tmp_path / "notes").rmdir()
    assert (missing(folder, status), summary(folder)["missing_text"]) == ("notes", "notes")


def test_of_a_pattern_the_folder_is_looked_for(tmp_path: Path) -> None:
    folder = made(tmp_path, {"kind": "files", "paths": ["notes/*/a?.txt"]})
    assert missing(folder) == "notes/*/a?.txt"
    (tmp_path / "notes").mkdir()
    assert missing(folder) == ""


def test_of_a_tuning_the_text_is_that_of_its_corpus(tmp_path: Path) -> None:
    data = {"kind": "tuning_text", "text": {"kind": "files", "paths": [str(tmp_path / "gone.txt")]}}
    assert missing(made(tmp_path, data)) == str(tmp_path / "gone.txt")


@pytest.mark.parametrize(
    "data", [{"kind": "embedded"}, {"kind": "files", "paths": "a"}, {"kind": "files", "paths": [7]}, [], None]
)
def test_what_names_no_files_misses_none(tmp_path: Path, data: Any) -> None:
    assert missing(made(tmp_path, data)) == ""


def test_nothing_is_said_of_what_cannot_be_resumed_here(tmp_path: Path) -> None:
    folder = made(tmp_path, {"kind": "files", "paths": ["gone.txt"]})
    assert [missing(folder, status) for status in ("running", "queued", "finished")] == [""] * 3
    assert missing(folder, host="elsewhere") == ""
    assert missing(folder, host=socket.gethostname()) == "gone.txt"
    write_json(folder.launched, {"folder": str(tmp_path / "gone")})
    assert missing(folder) == "", "where the path starts is not known any more"


def test_of_many_paths_few_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named = NamedText(made(tmp_path, {"kind": "files", "paths": ["."] * 1000}))
    looked: list[str] = []
    exists = os.path.exists
    monkeypatch.setattr(os.path, "exists", lambda path: looked.append(path) or exists(path))
    assert named.missing(RunState(status="stopped"), "stopped") == ""
    assert len(looked) == LOOKED_AT


def test_a_table_that_stays_open_hears_of_it(tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("text")
    folder = made(tmp_path, {"kind": "files", "paths": [str(text)]})
    os.utime(folder.path, (1e9, 1e9))
    listing = Listing(tmp_path)
    for _ in range(2):
        assert listing.look().rows[0]["missing_text"] == ""
    text.unlink()
    assert listing.look().rows[0]["missing_text"] == str(text)
    text.write_text("again")
    assert listing.look().rows[0]["missing_text"] == ""
