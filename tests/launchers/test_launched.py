"""A run is started again with what it was launched with, and never with what somebody else wrote down."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from workbench.launchers.launched import Launched, launch_environment_of, working_folder
from workbench.store.folder import RunFolder, write_json


@pytest.fixture
def python(tmp_path: Path) -> str:
    """Another Python than this one."""
    (tmp_path / "python").symlink_to(sys.executable)
    return str(tmp_path / "python")


def write(folder: RunFolder, **launched: object) -> None:
    write_json(folder.launched, {"on": "local", "folder": "/", "pid": 1, **launched})
    folder.launched.chmod(0o644)
    folder.path.chmod(0o755)


def test_no_secrets_are_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("JUPYTER_TOKEN", "secret")
    kept = Launched.here("local", "/")
    assert kept.python == sys.executable
    assert kept.settings["CUDA_VISIBLE_DEVICES"] == "1"
    assert "secret" not in str(kept)


def test_what_was_written_down_is_used_again(folder: RunFolder, python: str) -> None:
    write(
        folder, python=python, settings={"CUDA_VISIBLE_DEVICES": "1", "LD_PRELOAD": "/tmp/x.so", "OMP_NUM_THREADS": 4}
    )
    assert launch_environment_of(folder) == (python, {"CUDA_VISIBLE_DEVICES": "1"}), "known names, texts alone"


@pytest.mark.parametrize("who", ["folder for all", "file for all", "file for the group", "a link", "nobody"])
def test_what_others_may_have_written_is_not(folder: RunFolder, python: str, who: str, tmp_path: Path) -> None:
    write(folder, python=python, settings={"OMP_NUM_THREADS": "4"})
    if who == "folder for all":
        folder.path.chmod(0o777)
    elif who == "a link":
        elsewhere = tmp_path / "launched.json"
        folder.launched.rename(elsewhere)
        folder.launched.symlink_to(elsewhere)
    elif who == "nobody":
        folder.launched.unlink()
    else:
        folder.launched.chmod(0o666 if "all" in who else 0o664)
    assert launch_environment_of(folder) == (sys.executable, {})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_not_trusted(folder: RunFolder, python: str) -> None:
    write(folder, python=python, settings={})
    os.chown(folder.path, 12345, -1)
    assert launch_environment_of(folder) == (sys.executable, {})


@pytest.mark.parametrize("named", ["python", "/dev/null/python", 3, None, ""])
def test_a_python_that_is_gone_leaves_this_one(folder: RunFolder, named: object) -> None:
    write(folder, python=named, settings={})
    assert launch_environment_of(folder)[0] == sys.executable


def test_a_resume_starts_where_the_run_was_launched(folder: RunFolder, tmp_path: Path) -> None:
    for launched in ([], {"on": "local"}, {"folder": 3}, {"folder": "/gone"}):
        write_json(folder.launched, launched)
        assert working_folder(folder) == Path.cwd()
    write_json(folder.launched, {"on": "inline", "folder": str(tmp_path), "pid": "x"})
    assert working_folder(folder) == tmp_path
