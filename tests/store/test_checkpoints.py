"""Checkpoints as files: found in order, verified by hash, duplicated so that either name may go."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from pathlib import Path

import pytest

from workbench.store.checkpoints import checkpoints, duplicate, identity_of, problem_with, state_of


def make(folder: Path, step: int) -> Path:
    path = folder / f"step-{step}"
    path.mkdir()
    (path / "state.json").write_text(json.dumps({"step": step}))
    (path / "model.safetensors").write_bytes(os.urandom(1000))
    hashes = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in path.iterdir()}
    (path / "manifest.json").write_text(json.dumps({"format": 1, "sha256": hashes}))
    return path


def test_they_are_found_in_the_order_of_their_steps(tmp_path: Path) -> None:
    for step in (10, 9, 100):
        make(tmp_path, step)
    for other in ("step-3.tmp", "step-4.damaged", "other", "step-x"):
        (tmp_path / other).mkdir()
    assert [path.name for path in checkpoints(tmp_path)] == ["step-9", "step-10", "step-100"]
    assert checkpoints(tmp_path / "gone") == []
    assert state_of(tmp_path / "step-9") == {"step": 9}


@pytest.mark.parametrize("links", [True, False])
def test_a_duplicate_outlives_the_original(tmp_path: Path, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_link(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "another file system")

    if not links:
        monkeypatch.setattr("workbench.store.checkpoints.os.link", no_link)
    path, other = make(tmp_path, 1), make(tmp_path, 2)
    copy = tmp_path / "copy"
    duplicate(path, copy)
    assert (copy / "model.safetensors").samefile(path / "model.safetensors") == links
    assert identity_of(copy) == identity_of(path) != identity_of(other)
    for file in path.iterdir():
        file.unlink()
    assert problem_with(copy) is None
    assert "cannot be read" in str(problem_with(path))


def test_one_flipped_bit_is_found(tmp_path: Path) -> None:
    path = make(tmp_path, 1)
    data = bytearray((path / "model.safetensors").read_bytes())
    data[500] ^= 1
    (path / "model.safetensors").write_bytes(data)
    assert problem_with(path) == "model.safetensors is damaged (SHA-256 differs from the manifest)"
    (path / "manifest.json").write_text('{"format": 2, "sha256": {}}')
    assert "format 2 is not the format 1" in str(problem_with(path))
    (path / "manifest.json").write_text('{"format": 1, "sha256": {}}')
    assert problem_with(path) == "its manifest does not name state.json"
