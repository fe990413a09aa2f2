"""What is remembered of a machine: written once, trusted only whole, contradicted by what no busy moment can cause."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from tests.ops.test_timing import TRUE, Machine
from workbench.ops import remembered as module
from workbench.ops.remembered import Benchmark, contradiction, device_name, fastest, recheck, subject_of
from workbench.ops.timing import measure

CPU = torch.device("cpu")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    """The machine whose wall clock limits every measurement."""
    found = Machine()
    monkeypatch.setattr(module, "measure", lambda samples, **rest: measure(samples, wall=lambda: found.wall, **rest))
    return found


def benchmark(machine: Machine, **subject: object) -> Benchmark:
    return Benchmark(
        "attention", {"torch": "9", **subject}, tuple(TRUE), lambda: {n: machine.work(n, s) for n, s in TRUE.items()}
    )


def busy(machine: Machine, factor: float) -> None:
    machine._slow = lambda name, call, wall: factor


def poison(folder: Path, **seconds: float) -> None:
    (file,) = folder.iterdir()
    file.write_text(json.dumps({**json.loads(file.read_text()), "value": seconds}))


def test_measured_once_by_subject_and_the_file_says_when_and_how_well(tmp_path: Path, machine: Machine) -> None:
    folder, one = tmp_path / "measured", benchmark(machine)
    assert one.seconds(folder) == pytest.approx(TRUE)
    (file,) = folder.iterdir()
    record = json.loads(file.read_text())
    assert record["subject"] == {"torch": "9"}
    assert record["value"] == pytest.approx(TRUE)
    assert record["disagreement"] == pytest.approx(0.0, abs=1e-3)
    calls = dict(machine.calls)
    assert one.seconds(folder) == pytest.approx(TRUE)
    assert machine.calls == calls
    benchmark(machine, threads=2).seconds(folder)
    assert machine.calls != calls
    assert len(list(folder.iterdir())) == 2


@pytest.mark.parametrize(
    "damage",
    [
        "", "{", "[]", "null", "1" * 5000, "[" * 5000, '{"subject": 1}', '{"subject": {"torch": "9"}, "value": {}}',
        {"value": {"a": 1.0}}, {"value": {"a": "x", "b": 1}}, {"value": {"a": -1.0, "b": 1.0}}, {"value": [1, 2]},
        {"value": {"a": float("nan"), "b": 1.0}}, {"measured": "yesterday"}, {"measured": 5}, {"subject": {}},
        {"more": 1},
    ],
    ids=str,
)  # fmt: skip
def test_what_cannot_be_trusted_is_measured_again(tmp_path: Path, machine: Machine, damage: str | dict) -> None:  # type: ignore[type-arg]
    one = benchmark(machine)
    one.seconds(tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_text(damage if isinstance(damage, str) else json.dumps({**json.loads(file.read_text()), **damage}))
    assert one.recalled(tmp_path) is None
    assert recheck(one, tmp_path) is None, "nothing is remembered that could be contradicted"
    assert one.seconds(tmp_path) == pytest.approx(TRUE)
    assert one.recalled(tmp_path) == pytest.approx(TRUE)
    assert list(tmp_path.iterdir()) == [file]


def test_without_a_folder_or_with_one_that_cannot_be_written_it_is_measured_all_the_same(
    tmp_path: Path, machine: Machine
) -> None:
    assert benchmark(machine).seconds(None) == pytest.approx(TRUE)
    (tmp_path / "file").write_text("no folder")
    assert benchmark(machine).seconds(tmp_path / "file") == pytest.approx(TRUE)


def test_what_was_measured_in_a_slow_moment_is_contradicted_in_a_quick_one(tmp_path: Path, machine: Machine) -> None:
    one = benchmark(machine)
    busy(machine, 2.0)
    assert one.seconds(tmp_path) == pytest.approx({name: 2 * seconds for name, seconds in TRUE.items()})
    busy(machine, 1.0)
    found = recheck(one, tmp_path)
    assert found is not None
    assert found.remembered == pytest.approx({name: 2 * seconds for name, seconds in TRUE.items()})
    assert found.seen == found.measured == pytest.approx(TRUE)
    assert found.text == (
        "attention was remembered from a busy moment: a took 10 ms, and 20 ms was remembered; measured again: "
        "a 10 ms, b 14 ms"
    )
    assert one.recalled(tmp_path) == pytest.approx(TRUE)
    assert recheck(one, tmp_path) is None


@pytest.mark.parametrize(
    "wrong", [{"a": 0.1, "b": 0.014}, {"a": 0.014, "b": 0.010}, {"a": 0.010, "b": 0.001}, {"a": 1e3, "b": 1e3}], ids=str
)
@pytest.mark.parametrize("factor", [1.0, 1.1])
def test_a_poisoned_file_is_put_right(tmp_path: Path, machine: Machine, wrong: dict[str, float], factor: float) -> None:
    one = benchmark(machine)
    one.seconds(tmp_path)
    poison(tmp_path, **wrong)
    busy(machine, factor)
    found = recheck(one, tmp_path)
    assert found is not None
    assert found.remembered == wrong
    assert fastest(one.seconds(tmp_path)) == "a"
    assert one.seconds(tmp_path) == pytest.approx({name: factor * seconds for name, seconds in TRUE.items()})


def test_small_differences_and_single_candidates_that_seem_slower_are_left_alone() -> None:
    assert contradiction({"a": 1.2, "b": 1.5}, {"a": 1.0, "b": 1.5}) == ""
    assert contradiction({"a": 1.0, "b": 1.2}, {"a": 1.2, "b": 1.1}) == ""
    assert contradiction({"a": 1.0}, {"a": 9.0}) == ""
    assert contradiction({"a": 1.0, "b": 1.5}, {"a": 2.0, "b": 1.5}) == (
        "b took 1.5e+03 ms and a, remembered as the fastest, 2e+03 ms"
    )


def test_a_subject_holds_whatever_changes_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "ALL")  # whatever the tests run under
    here = subject_of(CPU, dtype="bfloat16")
    assert json.loads(json.dumps(here)) == here
    assert here["device"] == device_name(CPU)
    assert subject_of(CPU, 7)["threads"] == 7
    others = [subject_of(CPU, dtype="float32"), subject_of(CPU, here["threads"] + 1, dtype="bfloat16")]
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX2")
    others.append(subject_of(CPU, dtype="bfloat16"))
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "ALL")
    monkeypatch.setattr(torch, "__version__", "99.0")
    others.append(subject_of(CPU, dtype="bfloat16"))
    assert all(other != here for other in others)
