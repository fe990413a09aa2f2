"""Notes of runs folders: only what this user has written down is served."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.jupyter.feed.registered_roots import key_of, register, registered


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = tmp_path / "project" / "runs"
    path.mkdir(parents=True)
    return path


def test_a_registered_folder_is_found_by_its_key(tmp_path: Path, runs: Path) -> None:
    notes = tmp_path / "notes"
    key = register(notes, runs)
    assert key == register(notes, runs) == key_of(runs)
    assert registered(notes, key) == runs
    assert [path.name for path in notes.iterdir()] == [key]
    assert (notes / key).stat().st_mode & 0o077 == 0


def test_a_folder_with_any_name_can_be_registered(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b'r\xff "uns"\n')
    assert registered(tmp_path / "notes", register(tmp_path / "notes", odd)) == odd


@pytest.mark.parametrize("key", ["", "here", "../" * 8, "0" * 31, "0" * 32, "0" * 33, "A" * 32])
def test_other_keys_are_none(tmp_path: Path, runs: Path, key: str) -> None:
    register(tmp_path / "notes", runs)
    assert registered(tmp_path / "notes", key) is None


def test_a_note_that_was_changed_or_renamed_is_none(tmp_path: Path, runs: Path) -> None:
    notes = tmp_path / "notes"
    key = register(notes, runs)
    note = notes / key
    for text in (b"/etc", b"runs", b"", bytes(runs) + b"2", b"/" + b"x" * 9999, b"/\xff\x00"):
        note.write_bytes(text)
        assert registered(notes, key) is None, text
    # A kernel that shows a run again mends it.
    assert registered(notes, register(notes, runs)) == runs


def test_a_note_that_others_can_write_is_none(tmp_path: Path, runs: Path) -> None:
    notes = tmp_path / "notes"
    key = register(notes, runs)
    note = notes / key
    note.chmod(0o666)
    assert registered(notes, key) is None
    note.chmod(0o600)
    notes.chmod(0o777)
    assert registered(notes, key) is None
    notes.chmod(0o700)
    assert registered(notes, key) == runs


def test_a_linked_note_and_a_pipe_are_none(tmp_path: Path, runs: Path) -> None:
    notes = tmp_path / "notes"
    key = register(notes, runs)
    note = notes / key
    note.rename(tmp_path / "elsewhere")
    assert (tmp_path / "elsewhere").read_bytes() == bytes(runs)
    note.symlink_to(tmp_path / "elsewhere")
    assert registered(notes, key) is None
    note.unlink()
    os.mkfifo(note, 0o600)
    assert registered(notes, key) is None
