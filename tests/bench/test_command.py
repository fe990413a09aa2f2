"""Which benchmarks there are, and what a wrong name says."""

from __future__ import annotations

import importlib
import os

import pytest

from workbench.base.errors import WorkbenchError
from workbench.base.heap_settings import NAMES, heap_settings
from workbench.bench.command import BENCHES, main


@pytest.mark.parametrize("name", BENCHES)
def test_every_listed_benchmark_exists_and_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    module = importlib.import_module(f"workbench.bench.{name}")
    with pytest.raises(SystemExit, match="0"):
        module.main(["--help"])
    assert f"workbench bench {name}" in capsys.readouterr().out


def test_unknown_benchmark_names_the_legal_ones() -> None:
    with pytest.raises(WorkbenchError, match=r"'peer'.*did you mean 'peers'.*startup"):
        main(["peer"])


def test_a_gpu_has_a_short_name(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["--gpu", "--help"])
    assert "bert_large_512" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "here"), [("peers", False), ("optimizer_steps", True), ("telemetry", True)])
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
