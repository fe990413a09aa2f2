"""The workflow that users copy: its commands exist, and it keeps what they leave."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import papermill
import yaml

from tests.documents import ROOT
from workbench.experiments.result import FAIL_ON

FILE = ROOT / "docs" / "github" / "race.yml"


def steps() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["jobs"]["race"]["steps"]
    return found


def test_it_is_a_workflow() -> None:
    whole = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    # YAML 1.1 reads the word `on` as true; GitHub does not.
    assert set(whole) == {"name", True, "permissions", "jobs"}
    for step in steps():
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
