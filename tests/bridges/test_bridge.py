from __future__ import annotations

import csv
import json
import pkgutil
import threading
import tomllib
from pathlib import Path

import pytest

from tests.bridges.conftest import Recorded
from tests.tiny_runs import wait_until
from workbench.base.errors import RunError
from workbench.bridges import bridge as module
from workbench.bridges.bridge import TOOLS, send
from workbench.bridges.tables import Csv
from workbench.cli.command import main


def test_every_tool_says_what_it_needs_and_who_brings_it() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    for home in TOOLS.values():
        tool = pkgutil.resolve_name(home)
        brought = " ".join(project["optional-dependencies"].get(tool.extra, []))
        assert all(name in brought for name in tool.needs), home


def test_bad_requests_are_one_sentence(recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunError, match="to: unknown value 'tensorbord'; did you mean 'tensorboard'"):
        send(recorded, "tensorbord")
    with pytest.raises(RunError, match="no run 'nobody'"):
        send("nobody", "csv", runs_dir=recorded.folder.path.parent)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="is a file"):
        send(recorded, "csv", tmp_path / "file")
    monkeypatch.setattr(Csv, "needs", ("no_such_package",))
    with pytest.raises(RunError, match="needs no_such_package: pip install 'workbench\\["):
        send(recorded, "csv", tmp_path / "out")


def test_following_ends_with_the_run_and_keeps_others_out(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FOLLOW_SECONDS", 0.05)
    said: list[str] = []
    follower = threading.Thread(
        target=send, args=(recorded, "csv", tmp_path / "out"), kwargs={"follow": True, "said": said.append}
    )
    follower.start()
    wait_until(lambda: len(said) == 1, what="the first rows")
    with pytest.raises(RunError, match="another process sends run"):
        send(recorded, "csv", tmp_path / "out")
    recorded.steps(16, 20)
    wait_until(lambda: len(said) == 2, what="the new rows")
    recorded.finish()
    follower.join(60)
    assert not follower.is_alive()
    assert said[-1].endswith("up to step 20")
    with (tmp_path / "out" / f"{recorded.folder.id}.csv").open() as file:
        assert [int(row["step"]) for row in csv.DictReader(file)] == list(range(1, 21))


def test_the_command_sends_several_runs(recorded: Recorded, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded.finish()
    out = tmp_path / "out"
    asked = [recorded.folder.id, "--to", "csv", "--folder", str(out), "--runs", str(recorded.folder.path.parent)]
    assert main(["send", *asked, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["runs"] == [recorded.folder.id]
    assert Path(answer["folder"]) == out
    assert (out / f"{recorded.folder.id}.csv").is_file()
    assert main(["send", *asked, recorded.folder.id, "--follow"]) == 2
    assert main(["send", recorded.folder.id, "--to", "exel", "--runs", str(recorded.folder.path.parent)]) == 2
    assert "legal: csv, mlflow" in capsys.readouterr().err
