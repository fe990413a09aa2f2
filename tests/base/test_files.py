"""A file is there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from workbench.base.files import usual_permissions, write_bytes


def test_replaces_whole_and_leaves_nothing_aside(tmp_path: Path) -> None:
    target = tmp_path / "state.json"
    for content in (b"first", b"second"):
        write_bytes(target, content)
        assert target.read_bytes() == content
    assert list(tmp_path.iterdir()) == [target]


def test_failure_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "state.json"
    write_bytes(target, b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_bytes(target, b"new")
    assert target.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [target]


def test_others_may_read_it_as_the_umask_allows(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        write_bytes(tmp_path / "report.html", b"page")
    finally:
        os.umask(before)
    assert (tmp_path / "report.html").stat().st_mode & 0o777 == 0o644


def test_files_get_what_the_umask_grants(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        folder = tmp_path / "step-1"
        folder.mkdir()
        (folder / "beside").write_text("")
    finally:
        os.umask(before)
    for name, mode in (("closed", 0o600), ("open", 0o666)):
        (folder / name).write_text("")
        (folder / name).chmod(mode)
    usual_permissions(folder)
    assert {oct(path.stat().st_mode & 0o777) for path in folder.iterdir()} == {oct(0o640)}
