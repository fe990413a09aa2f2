"""``workbench new``: every kind is written, its tests pass before anything is changed, and the workbench finds it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import nbformat
import pytest

from workbench.base.errors import WorkbenchError
from workbench.cli.command import main
from workbench.cli.new import KINDS, write

TINY = ["architecture.layers=2", "architecture.width=32", "data.tokenizer.vocabulary_size=256"]


def record(folder: Path, site: Path) -> None:
    """Write down an entry point as pip does."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    info = site / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = [f"[{group}]\n{name} = {module}\n" for group, points in project["entry-points"].items()
             for name, module in points.items()]  # fmt: skip
    (info / "entry_points.txt").write_text("".join(lines))


def python(command: list[str], path: list[Path], **variables: str) -> str:
    """Run Python with packages on its path; returns what it printed."""
    environment = {**os.environ, **variables}
    environment["PYTHONPATH"] = os.pathsep.join([*map(str, path), environment.get("PYTHONPATH", "")])
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout


@pytest.mark.extended
@pytest.mark.process
def test_every_kind_is_found_and_passes_its_own_tests(tmp_path: Path) -> None:
    folders = [write(kind, f"my_{kind}", tmp_path) for kind in KINDS]
    for folder in folders:
        record(folder, tmp_path / "site")
    options = ["-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path)]
    said = python(["-m", "pytest", *options, *map(str, folders)], [tmp_path / "site", *folders])
    assert "passed" in said
    assert "skipped" not in said


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_left_to_fill_in_and_the_lesson_is_a_notebook(kind: str, tmp_path: Path) -> None:
    folder = write(kind, "my_try", tmp_path)
    for path in folder.rglob("*.*"):
        text = path.read_text()
        words = ("@name@", "@Class@", "@title@", "@axis@", "@knobs@", "@gone@")
        assert not [word for word in words if word in text], path
        if path.suffix == ".py":
            compile(text, str(path), "exec")
    lesson = nbformat.read(folder / "notebooks" / "my_try.ipynb", as_version=4)
    nbformat.validate(lesson)
    cells = [cell for cell in lesson.cells if cell.cell_type == "code"]
    assert cells[0].metadata.tags == ["parameters"]
    assert len(cells) >= 3


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("My-Opt", "cannot be the name"), ("lambda", "cannot be the name"), ("9lives", "cannot be the name"),
        ("", "cannot be the name"), ("../up", "cannot be the name"), ("adamw", "there is an optimizer 'adamw' already"),
        ("torch", "name of an installed package"), ("json", "name of an installed package"),
    ],
)  # fmt: skip
def test_a_name_that_cannot_be_is_refused(name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(WorkbenchError, match=why):
        write("optimizer", name, tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_command_says_what_is_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "plot", "my_try", "--folder", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["folder"] == str(tmp_path / "my_try")
    assert main(["new", "plot", "my_try", "--folder", str(tmp_path)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert main(["new", "optimiser", "my_other", "--folder", str(tmp_path)]) == 2
    assert "did you mean 'optimizer'" in capsys.readouterr().err


@pytest.mark.process
def test_a_broken_plot_of_another_package_does_not_take_the_report_away(tmp_path: Path) -> None:
    code = (
        "from workbench.plots import own, report\n"
        "from workbench.store.view import RunView\n"
        "from workbench.telemetry.streams import Telemetry\n"
        "own.register('theirs', 'how to read it', lambda views, x: 1 / 0)\n"
        "page = report.report_html([RunView('20260101-a', 'a', 'finished', {}, {}, {}, {}, Telemetry())])\n"
        "print('plot theirs: ZeroDivisionError: division by zero' in page)\n"
    )
    assert python(["-c", code], []).strip() == "True"


@pytest.mark.extended
@pytest.mark.process
def test_installed_packages_race_score_and_stand_in_the_report(tmp_path: Path, corpus: Path) -> None:
    """As a new user would: made, installed into an environment, raced, scored and reported."""
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "env")], check=True)
    own = tmp_path / "env" / "bin" / "python"
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    # Of this environment, for it is not to be downloaded once more.
    (site / "base.pth").write_text("\n".join(path for path in sys.path if path))
    for kind in ("optimizer", "plot", "benchmark"):
        folder = write(kind, f"my_{kind}", tmp_path)
        command = [str(own), "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "-e", str(folder)]
        subprocess.run(command, check=True)

    def workbench(*arguments: str, variables: Mapping[str, str] = os.environ) -> str:
        command = [str(own), "-m", "workbench", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=dict(variables))
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    assert "my_optimizer" in workbench("choices", "optimizer")
    assert "## Evidence here" in workbench("choices", "optimizer", "my_optimizer")
    changes = [part for change in TINY for part in ("--set", change)]
    told = workbench(
        "race", "quickstart", "mine=quickstart:optimizer=my_optimizer", "--budget", "20 steps", "--seeds", "2",
        "--reference", "none", "--text", str(corpus), "--report", "race.html", *changes,
    )  # fmt: skip
    assert "mine" in told
    assert "my_optimizer" in (tmp_path / "race.html").read_text()
    run = json.loads(workbench("runs", "--json"))["runs"][0]["run"]
    assert "my_benchmark" in workbench("score", run, "--on", "my_benchmark")
    workbench("report", run)
    page = (tmp_path / "runs" / run / "report.html").read_text()
    assert "own-my_plot/step" in page
    assert "my_benchmark" in page
