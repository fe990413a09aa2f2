"""MetaTensor against real tensors: shapes, types, strides and views of whole passes, and what may not be changed."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import Tensor

from workbench import presets
from workbench.choices.data.tokens import Vocabulary
from workbench.forecasting.meta_tensors import MetaTensor, MetaTensorMode, ModelSpec, meta_model, meta_parameters
from workbench.ops.attention import sdpa

VOCABULARY = Vocabulary(512, 512, 1, 2, 3, 0, 4)


class Names(MetaTensorMode):
    """Names of operations that were seen, and what they wrote."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, torch.Size, torch.dtype]] = []

    def saw(self, name: str, read: list[Tensor], written: list[Tensor]) -> None:
        assert all(t.is_meta for t in (*read, *written))
        self.seen.append((name, written[0].shape, written[0].dtype))


def _mixed(x: Tensor, w: Tensor) -> list[Tensor]:
    """Broadcasts, promotion, views, strided results, in place, a reduction, a product."""
    y = (x.transpose(0, 1) * 2 + torch.arange(x.shape[0])).unsqueeze(-1)
    z = y.expand(-1, -1, 3).to(torch.bfloat16) * 1.5
    mask = torch.zeros(x.shape, dtype=torch.bool).masked_fill_(x > 0, True)
    return [y, z, mask, x.sum(0), x @ w, torch.where(mask, x, 0.0), x.long() + 1, x[:, ::2] * x[:, 1::2], 2 ** x[0, 0]]


def test_results_have_the_shapes_types_and_strides_of_real_ones() -> None:
    real = _mixed(torch.randn(4, 6), torch.randn(6, 5))
    for _ in range(2):  # once met, then remembered
        with MetaTensorMode():
            found = _mixed(torch.zeros(4, 6), torch.zeros(6, 5))
        for ours, theirs in zip(found, real, strict=True):
            assert isinstance(ours, MetaTensor)
            assert (ours.shape, ours.dtype, ours.stride()) == (theirs.shape, theirs.dtype, theirs.stride())


def test_numbers_of_one_value_and_two_types_are_not_mistaken_for_each_other() -> None:
    with MetaTensorMode():
        whole = torch.zeros(3, dtype=torch.int64)
        assert (whole * 1).dtype == torch.int64
        assert (whole * 1.0).dtype == torch.float32


def test_views_are_not_seen_and_changes_in_place_are() -> None:
    with Names() as names:
        x = torch.zeros(4, 6)
        names.seen.clear()
        x.view(2, 12).transpose(0, 1)
        x.detach()
        assert names.seen == []
        x.mul_(2)
        x.view(24).add_(1)
    assert [name for name, *_ in names.seen] == ["mul_", "add_"]


def test_autocast_and_autograd_hold_on_meta_tensors() -> None:
    with MetaTensorMode():
        w = torch.zeros(6, 5, requires_grad=True)
        with torch.autocast("cpu", torch.bfloat16):
            y = torch.zeros(4, 6) @ w
        assert y.dtype == torch.bfloat16
        y.sum().backward()
        assert w.grad is not None
        assert (w.grad.shape, w.grad.dtype) == (w.shape, torch.float32)


@pytest.mark.parametrize("learns", [False, True])
def test_fused_attention_is_chosen_as_on_a_real_cpu(learns: bool) -> None:
    def run(q: Tensor, mask: Tensor) -> Any:
        return sdpa(q, q, q, mask).sum().backward()

    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        run(torch.randn(2, 2, 8, 16, requires_grad=True), torch.zeros(2, 1, 8, 8, requires_grad=learns))
    fused = any("_scaled_dot_product_flash" in event.key for event in profile.key_averages())
    with Names() as names:
        run(torch.zeros(2, 2, 8, 16, requires_grad=True), torch.zeros(2, 1, 8, 8, requires_grad=learns))
    assert any("_scaled_dot_product_flash" in name for name, *_ in names.seen) == fused


def test_a_model_is_as_it_was_after_it_was_imagined() -> None:
    recipe = presets.fast()
    model = meta_model(ModelSpec(recipe.architecture, recipe.objective, VOCABULARY, 64))
    before = dict(model.named_parameters()) | dict(model.named_buffers())
    with meta_parameters(model):
        assert all(type(p) is MetaTensor and p.requires_grad for p in model.parameters())
        # Tied matrices stay one.
        assert len(list(model.parameters())) == len(dict(model.named_parameters()))
    after = dict(model.named_parameters()) | dict(model.named_buffers())
    assert before.keys() == after.keys()
    assert all(before[name] is after[name] for name in before)


def test_threads_that_share_a_model_take_turns() -> None:
    recipe = presets.fast()
    model = meta_model(ModelSpec(recipe.architecture, recipe.objective, VOCABULARY, 64))
    before = [id(parameter) for parameter in model.parameters()]
    inside, go_on, found = threading.Event(), threading.Event(), list[str]()

    def first() -> None:
        with meta_parameters(model):
            inside.set()
            assert go_on.wait(10)
            found.append("first")

    def second() -> None:
        with meta_parameters(model):
            found.append("second")

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert inside.wait(10)
    threads[1].start()
    threads[1].join(0.2)
    assert found == []
    go_on.set()
    for thread in threads:
        thread.join(10)
    assert found == ["first", "second"]
    assert [id(parameter) for parameter in model.parameters()] == before
