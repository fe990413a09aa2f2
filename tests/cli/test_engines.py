"""``workbench engines`` and ``workbench graphs``, as far as nothing is installed for them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from workbench.cli.command import main
from workbench.store.folder import RunFolder


@pytest.fixture(autouse=True)
def nothing_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    return tmp_path / "engines" / "onnxruntime"


def test_the_list_says_what_is_missing_and_the_way_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engines", "list"]) == 0
    said = capsys.readouterr().out
    assert "onnxruntime: engine 'onnxruntime' is not installed; run `workbench engines install onnxruntime`" in said
    assert "onnxruntime-training-cpu==1.19.2" in said
    assert main(["engines", "list", "onnxruntime", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)["engines"]
    assert found["name"] == "onnxruntime"
    assert (found["folder"], found["python"], found["bytes"]) == (None, None, 0)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["install", "onnxruntim"], "did you mean 'onnxruntime'?"),
        (["install", "native"], "trains in this Python needs none"),
        (["remove"], "which engine? `workbench engines remove onnxruntime`"),
        (["instal", "onnxruntime"], "did you mean 'install'?"),
    ],
)
def test_wrong_requests_name_what_was_meant(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["engines", *arguments]) == 2
    assert error in capsys.readouterr().err


@pytest.mark.process
def test_a_python_without_wheels_is_refused(
    nothing_installed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["engines", "install", "onnxruntime", "--python", "/dev/null/python"]) == 2
    assert "needs Python 3.11 or 3.12 (/dev/null/python: none" in capsys.readouterr().err
    assert not nothing_installed.exists()


@pytest.mark.process
def test_a_half_installed_engine_is_told_and_removed(
    nothing_installed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (nothing_installed / "venv").mkdir(parents=True)
    main(["engines", "list"])
    assert "is half installed" in capsys.readouterr().out
    assert main(["engines", "remove", "onnxruntime"]) == 0
    assert capsys.readouterr().out == "engine 'onnxruntime' is removed\n"
    assert not nothing_installed.exists()


def test_graphs_are_named_where_there_are_any(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = RunFolder(tmp_path / "20260101-000000-a-000000-0000")
    folder.path.mkdir()
    folder.recipe.write_text("{}")
    assert main(["graphs", str(folder.path)]) == 2
    assert "has no graphs: its engine makes none (execution 'onnxruntime' does)" in capsys.readouterr().err
    folder.graphs.mkdir()
    (folder.graphs / "length_32_execution_model_training.onnx").touch()
    assert main(["graphs", str(folder.path)]) == 0
    assert capsys.readouterr().out.strip().endswith("graphs/length_32_execution_model_training.onnx")
