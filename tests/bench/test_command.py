"""The list of benchmarks, and what a wrong name says."""

from __future__ import annotations

import os

import pytest

from workbench.base.errors import WorkbenchError
from workbench.base.heap_settings import NAMES, heap_settings
from workbench.bench.command import main
from workbench.bench.table import BENCHMARKS


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_of_the_table_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    assert f"workbench bench {name}" in capsys.readouterr().out


def test_the_list_tells_purpose_and_cost_and_a_wrong_name_the_legal_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert (main([]), main(["--list"])) == (2, 0)
    listed = capsys.readouterr().out
    assert all(listed.count(f"{spec.purpose} ({spec.cost})") == 2 for spec in BENCHMARKS.values())
    with pytest.raises(WorkbenchError, match=r"'peer'.*did you mean 'peers'.*startup"):
        main(["peer"])
    with pytest.raises(SystemExit, match="0"):
        main(["--gpu", "--help"])
    assert "bert_large_512" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "here"), [("peers", False), ("telemetry", True)])
def test_contenders_have_the_heap_of_trainers_and_what_is_measured_here_asks_torch(
    name: str, here: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = {key: value for key, value in os.environ.items() if key not in NAMES}
    monkeypatch.setattr(os, "environ", bare)
    added = heap_settings(bare)
    with pytest.raises(SystemExit, match="0"):
        main([name, "--help"])
    assert bare["GLIBC_TUNABLES"] == added["GLIBC_TUNABLES"]
    assert bare.get("THP_MEM_ALLOC_ENABLE") == ("1" if here else added.get("THP_MEM_ALLOC_ENABLE"))
