"""Run ids and paths: nothing outside the runs folder can be named; JSON files are whole or not there."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from workbench.base.errors import RunError
from workbench.store.folder import RunFolder, is_run_id, new_run_id, read_json, read_object, runs_root, write_json

MALICIOUS = [
    "",
    ".",
    "..",
    "../x",
    "a/b",
    "/etc",
    "a\x00b",
    "A",
    "a_b",
    "-a",
    "a" * 65,
    "a\n",
    "ä",
    "~",
    "$HOME",
    ".new-x",
]


@pytest.mark.parametrize("run_id", MALICIOUS)
def test_what_is_no_run_id_names_no_folder(run_id: str, tmp_path: Path) -> None:
    assert not is_run_id(run_id)
    with pytest.raises(RunError, match="not of the form"):
        RunFolder.of(run_id, tmp_path)


@pytest.mark.parametrize("name", ["BERT tiny", "../../etc", "", "漢字", "-" * 80, "a" * 80, "<script>", "x\ny"])
def test_any_name_gives_a_legal_id(name: str, tmp_path: Path) -> None:
    run_id = new_run_id(name, "0123456789", now=0.0)
    assert is_run_id(run_id)
    assert run_id.startswith("19700101-000000-")
    assert RunFolder.of(run_id, tmp_path).path.parent == tmp_path


def test_ids_of_one_second_differ() -> None:
    assert len({new_run_id("a", "0" * 10, now=0.0) for _ in range(20)}) > 15


def test_the_runs_folder_is_the_argument_else_the_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path))
    assert runs_root() == tmp_path
    assert runs_root("elsewhere") == Path.cwd() / "elsewhere"
    monkeypatch.delenv("WORKBENCH_RUNS")
    assert runs_root() == Path.cwd() / "runs"


def test_a_json_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"a": 1})
    with pytest.raises(TypeError):
        write_json(path, {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}
    assert list(tmp_path.iterdir()) == [path]
    path.write_text("{")
    assert read_json(path, "default") == "default"
    assert read_json(tmp_path / "gone") is None


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"a":' * 100_000, b"9" * 5000, b"\xff", b"", b"{"])
def test_damaged_json_reads_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.json").write_bytes(content)
    assert read_json(tmp_path / "a.json", 3) == 3
    assert read_object(tmp_path / "a.json") == {}


def test_a_number_that_nothing_could_calculate_with_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f'{{"tokens": 1{"0" * 400}, "step": {2**64}, "loss": 1e999}}')
    assert read_object(tmp_path / "a.json") == {"tokens": None, "step": 2**64, "loss": float("inf")}


def test_a_file_that_another_machine_replaces_meanwhile_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_json(tmp_path / "state.json", {"status": "running"})
    real, stale = os.fdopen, [True]

    def opened(descriptor: int, mode: str) -> object:
        if stale and stale.pop():
            os.close(descriptor)
            raise OSError(errno.ESTALE, "Stale file handle")
        return real(descriptor, mode)

    monkeypatch.setattr(os, "fdopen", opened)
    assert read_json(tmp_path / "state.json") == {"status": "running"}
    stale += [True, True]
    assert read_json(tmp_path / "state.json") is None


def test_a_pipe_in_the_place_of_a_file_holds_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "recipe.json")
    assert read_json(tmp_path / "recipe.json", 3) == 3
