"""What every engine shares: the axis it is found on, the device in force, equal micro-batches."""

from __future__ import annotations

import pytest
import torch

from workbench.base.errors import RecipeError
from workbench.choices.choice import registry
from workbench.choices.execution import Execution, Native
from workbench.recipes.recipe import Recipe


def test_engines_are_found_by_their_axis_and_the_base_is_none() -> None:
    assert registry("execution")["native"] is Native
    assert all(issubclass(engine, Execution) and engine is not Execution for engine in registry("execution").values())


def test_an_unknown_engine_is_answered_with_the_nearest() -> None:
    with pytest.raises(RecipeError, match=r"execution\.kind: unknown value 'nativ'; did you mean 'native'\?"):
        Recipe(execution="nativ")


def test_a_choice_of_another_axis_is_no_engine() -> None:
    with pytest.raises(RecipeError, match="a choice of axis 'execution' stands where 'depth' is expected"):
        Recipe(depth=Native())


def test_auto_takes_a_gpu_if_there_is_one() -> None:
    assert Native().resolve_device().type == ("cuda" if torch.cuda.is_available() else "cpu")
    assert Native(device="cpu").resolve_device() == torch.device("cpu")


def test_a_run_may_take_one_of_the_gpus_that_are_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Native(device="cpu").gpus() == []
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    assert Native().gpus() == [str(index) for index in range(torch.cuda.device_count())]


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a CUDA device")
def test_a_missing_gpu_is_said_with_the_way_out() -> None:
    with pytest.raises(RecipeError, match=r"execution\.device: 'cuda' was asked for.*use 'auto' or 'cpu'"):
        Native(device="cuda").resolve_device()


@pytest.mark.parametrize("rows", [5, 48])
def test_micro_batches_must_divide_the_batch(rows: int) -> None:
    message = (
        rf"execution\.micro_batch_size: {rows} rows do not divide data\.batch_size 32; use one of 1, 2, 4, 8, 16, 32"
    )
    with pytest.raises(RecipeError, match=message):
        Recipe(execution={"kind": "native", "micro_batch_size": rows})
    assert Recipe(execution={"kind": "native", "micro_batch_size": 8}).execution.micro_batch_size == 8


def test_micro_batches_must_divide_both_ends_of_a_ramp() -> None:
    def ramp(start: int, end: int) -> Recipe:
        return Recipe().with_(data={"batch_size": {"kind": "linear", "start": start, "end": end}})

    assert ramp(8, 64).with_(execution={"micro_batch_size": 8}).execution.micro_batch_size == 8
    # A batch smaller than a micro-batch is one by itself, but the largest batch is made of whole ones.
    assert ramp(4, 64).with_(execution={"micro_batch_size": 16}).execution.micro_batch_size == 16
    for start, end, wrong in ((24, 64, 24), (16, 60, 60), (4, 12, 12)):
        with pytest.raises(RecipeError, match=f"16 rows do not divide data.batch_size {wrong}"):
            ramp(start, end).with_(execution={"micro_batch_size": 16})
