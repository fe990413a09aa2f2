"""Parameters of notebooks that are of the wrong kind are refused in words, before anything trains."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.documents import ROOT, code_cells
from workbench.base.errors import WorkbenchError

FOLDER = ROOT / "notebooks"


@pytest.mark.parametrize(
    ("stem", "given", "said"),
    [
        ("10_train", {"budget": 0}, "budget: 0 has no unit"),
        ("10_train", {"overrides": 5}, "changes are a list of PATH=VALUE texts"),
        ("10_train", {"target_loss": "abc"}, "target_loss: 'abc' is no held-out loss; give nats, such as 6.5, or none"),
        ("10_train", {"seed": "x"}, "seed: must be a whole number"),
        ("00_quickstart", {"overrides": 5}, "changes are a list of PATH=VALUE texts"),
        ("20_race", {"seeds": "two"}, "seeds: 'two' is neither a number of seeds nor a list of them"),
        ("22_sweep", {"points": "two"}, "runs: how many points is a whole number"),
        ("40_pld", {"overrides": 5}, "changes are a list of PATH=VALUE texts"),
        ("41_lans", {"rows": ["abc"]}, "data.batch_size.kind: unknown value 'abc'"),
        ("42_mslt", {"overrides": 5}, "changes are a list of PATH=VALUE texts"),
        ("43_execution", {"budget": 0}, "budget: 0 has no unit"),
        ("50_finetune_squad", {"overrides": 5}, "changes are a list of PATH=VALUE texts"),
    ],
)
def test_parameters_of_the_wrong_kind_are_refused_before_anything_trains(
    stem: str, given: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Before a run is launched, or at the call that launches the first: a race or sweep has no other.
    parameters, *cells = (cell.source for cell in code_cells(FOLDER / f"{stem}.ipynb"))
    names: dict[str, Any] = {}
    exec(parameters, names)
    names |= {**given, "runs_dir": str(tmp_path / "runs")}
    with pytest.raises(WorkbenchError, match=re.escape(said)):
        _executed(cells[:2], names)
    assert not list((tmp_path / "runs").glob("*"))


def _executed(cells: list[str], names: dict[str, Any]) -> None:
    for cell in cells:
        exec(cell, names)
