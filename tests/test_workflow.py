"""The workflow that users copy: its commands exist, and it keeps what they leave."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import papermill
import pytest
import yaml

from tests.documents import ROOT
from workbench.experiments.result import FAIL_ON

FILES = ROOT / "docs" / "ci"
FILE, EXAMPLE = FILES / "github.yml", FILES / "example"
WORKFLOW = EXAMPLE / ".github" / "workflows" / "race.yml"


def steps(path: Path = FILE) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]["race"]["steps"]
    return found


@pytest.mark.parametrize("path", [FILE, WORKFLOW], ids=lambda path: path.parent.name)
def test_it_is_a_workflow(path: Path) -> None:
    whole = yaml.safe_load(path.read_text(encoding="utf-8"))
    # YAML 1.1 reads the word `on` as true; GitHub does not.
    assert set(whole) == {"name", True, "permissions", "jobs"}
    for step in steps(path):
        assert ("uses" in step) != ("run" in step)
        assert re.fullmatch(r"actions/[a-z-]+@v\d+", step.get("uses", "actions/checkout@v4"))


def test_its_commands_exist() -> None:
    programs = [shlex.split(step["run"])[0] for step in steps() if "run" in step]
    assert programs == ["python", "git", "papermill"]
    installed = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    assert all(shutil.which(program, path=installed) for program in programs)


def test_the_notebook_takes_its_parameters_and_all_it_writes_is_kept() -> None:
    (words,) = (shlex.split(step["run"]) for step in steps() if step.get("run", "").startswith("papermill"))
    known = papermill.inspect_notebook(str(ROOT / words[1]))
    given = {name: value for flag, name, value in zip(words, words[1:], words[2:], strict=False) if flag == "-p"}
    assert given.keys() <= known.keys()
    assert given["fail_on"] in FAIL_ON[1:]
    (kept,) = (step["with"]["path"].split() for step in steps() if step.get("uses", "").startswith("actions/upload"))
    results = known["results_path"]["default"].strip("\"'")
    written = {words[2], results, results.replace(".json", ".xml"), known["report_path"]["default"].strip("\"'")}
    assert set(kept) == written


def test_gitlab_runs_the_same_and_keeps_the_same() -> None:
    job = yaml.safe_load((FILES / "gitlab.yml").read_text(encoding="utf-8"))["race"]
    (github,) = (step["run"] for step in steps() if step.get("run", "").startswith("papermill"))
    assert job["script"] == ["python -m pip install .", github]
    assert job["artifacts"]["when"] == "always"
    assert job["artifacts"]["reports"] == {"junit": "race.xml"}
    assert job["artifacts"]["paths"] == ["race.ipynb", "race.html", "race.json"]


@pytest.mark.extended
@pytest.mark.process
@pytest.mark.parametrize(("change", "code"), [("", 0), (":optimizer.lr=1e-6", 3)], ids=["as it stands", "worse"])
def test_the_example_is_executed(change: str, code: int, tmp_path: Path) -> None:
    """A copy of the repository, by the commands of its own workflow; what makes it worse is one edit of the recipe."""
    place = tmp_path / "example"
    shutil.copytree(EXAMPLE, place)
    text, race = (step["run"] for step in steps(WORKFLOW) if step.get("name") in ("Text", "Race"))
    assert "mine=recipe.json" in race
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
    environment.pop("WORKBENCH_RUNS", None)
    for command in (text, race.replace("mine=recipe.json", f"mine=recipe.json{change}")):
        done = subprocess.run(["bash", "-c", command], cwd=place, env=environment, capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    cases = ElementTree.parse(place / "race.xml").getroot().iter("testcase")
    assert any(case.find("failure") is not None for case in cases) == bool(code)
    assert (place / "race.html").stat().st_size > 10_000
