"""The plainest engine: torch in float32, eager; what it leaves for others to do otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from workbench.choices.execution import Engine, Mode
from workbench.choices.execution.execution import Execution
from workbench.ops.remembered import Benchmark, device_name
from workbench.ops.timing import timed
from workbench.recipes.recipe import Recipe

CPU = torch.device("cpu")


def engine(**change: object) -> Engine:
    return Engine(Recipe().with_(**change), CPU)


def test_the_plainest_engine_changes_nothing() -> None:
    plain, one = engine(), torch.ones(2, 2)
    with plain.autocast():
        assert (one @ one).dtype == plain.dtype == torch.float32
    assert plain.attention == "plain"
    assert (plain.loss_scale, plain.state(), plain.benchmarks()) == (None, {}, [])
    assert plain.assumptions() == []
    plain.settle()
    assert plain.mode._replace(threads=1) == Mode("cpu", 1, "fp32", compiled=False)


@pytest.mark.parametrize(("precision", "size"), [("fp32", 4), ("tf32", 4), ("bf16", 2), ("fp16", 2), ("fp8", 2)])
def test_every_precision_of_a_mode_has_a_type(precision: str, size: int) -> None:
    assert Mode("cpu", 1, precision, compiled=False).dtype.itemsize == size


def test_rows_of_a_pass_are_those_of_a_micro_batch_or_of_the_largest_batch() -> None:
    assert engine(data={"batch_size": 16}).rows == 16
    assert engine(data={"batch_size": 16}, execution={"micro_batch_size": 4}).rows == 4
    ramp = {"kind": "linear", "start": 4, "end": 16, "length": 1e6, "over": "tokens"}
    assert engine(data={"batch_size": ramp}).rows == 16, "under a budget of steps, tokens are not foreseen"


class Choosing(Engine):
    attentions = ("plain", "sdpa")


@pytest.mark.parametrize("change", [{"device": "another"}, {"attention": "unheard of"}, {"attention": []}])
def test_attention_of_a_resumed_run_is_its_own_on_the_same_device(
    change: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Choosing, "_attention_benchmark", lambda self: pytest.fail("measured"))
    begun = {"device": device_name(CPU), "attention": "sdpa"}
    resumed = Choosing(Recipe(), CPU)
    resumed.resume(begun)
    assert resumed.attention == "sdpa"
    assert resumed.described() == {"attention": "sdpa", "precision": "fp32"}
    resumed.resume(begun | change)
    with pytest.raises(pytest.fail.Exception, match="measured"):
        _ = resumed.attention


def test_what_is_measured_before_a_model_is_built_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    samples = {name: timed(lambda: None, CPU) for name in Choosing.attentions}
    benchmark = Benchmark("attention", {"of": "this test"}, Choosing.attentions, lambda: samples)
    monkeypatch.setattr(Choosing, "_attention_benchmark", lambda self: benchmark)
    told: list[str] = []
    for _ in range(2):
        Choosing(Recipe(), CPU).measure(lambda what, _how_often: told.append(what))
    engine().measure(lambda what, _how_often: told.append(what))
    assert told == ["measuring attention"], "remembered, and nothing to choose from"


def test_gradients_add_up_by_share_and_are_gone_after_the_step() -> None:
    plain, weight = engine(), torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    for share in (0.25, 0.75):
        plain.backward((weight * 4).sum() * share, 2)
    plain.finish(optimizer)
    assert weight.grad is not None
    assert weight.grad.tolist() == [4.0, 4.0]
    plain.step(optimizer)
    assert weight.tolist() == [-3.0, -2.0]
    assert weight.grad is None


def test_only_starting_takes_the_threads() -> None:
    before = torch.get_num_threads()
    try:
        threaded = engine(execution={"threads": before + 1})
        assert threaded.mode.threads == before + 1
        assert torch.get_num_threads() == before
        threaded.start()
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)


def test_a_choice_without_an_engine_says_so() -> None:
    with pytest.raises(NotImplementedError):
        Execution().engine(Recipe())
