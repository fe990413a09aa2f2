"""Hand numbers of the FLOP count."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from tests.choices.architectures.packing import VOCABULARY, variants
from workbench.choices.architectures.flops import attention_span, count_parameters, head_flops, layer_flops, step_flops
from workbench.choices.architectures.post_ln import PostLN
from workbench.choices.architectures.pre_ln import PreLN
from workbench.choices.depth.plan import LayerPlan

BASE = PostLN(layers=12, width=768, heads=12)


def test_bert_base_by_hand() -> None:
    assert BASE.block_parameters() == 7_077_888
    assert layer_flops(BASE, LayerPlan.full(12), 128.0) == [6 * 7_077_888 + 12 * 768 * 128] * 12
    assert head_flops(BASE, 30_528) == 6 * (768 * 768 + 768 * 30_528)


def test_a_step_of_the_tiny_preset_by_hand() -> None:
    tiny = PreLN(layers=4, width=256, heads=4)  # N = 4 d^2 + 8 d^2 = 786,432
    full = 6 * 786_432 + 12 * 256 * 100
    last = 6 * (196_608 + 589_824 * 600 / 4096) + 12 * 256 * 100
    expected = 4096 * (3 * full + last) + 600 * 6 * 256 * 30_528
    assert step_flops(tiny, 30_528, [LayerPlan.full(4)], 4096, 600, 100.0) == pytest.approx(expected)


def test_dropped_and_frozen_layers() -> None:
    full = LayerPlan.full(4)
    forward, attention = 2 * PreLN(layers=4).block_parameters(), 256 * 10.0
    plan = dataclasses.replace(full, runs=(True, False, True, True), trains=(False, False, True, False))
    assert layer_flops(PreLN(layers=4), plan, 10.0) == [
        forward + 4 * attention,
        0,
        3 * forward + 12 * attention,
        2 * forward + 12 * attention,
    ]


def test_a_window_shortens_the_span_of_local_layers() -> None:
    """Counted pair by pair; W / 2 = 3 to both sides."""
    choice = PreLN(layers=4, local_window=6, global_every=3)
    for length in (2, 4, 5, 20):
        pairs = sum(abs(t - s) <= 3 for t in range(length) for s in range(length))
        assert choice.layer_span(1, length) == pytest.approx(pairs / length)
    assert choice.layer_span(0, 20.0) == choice.layer_span(3, 20.0) == 20.0
    counts = layer_flops(choice, LayerPlan.full(4), 20.0)
    parameters, attention = 6 * choice.block_parameters(), 12 * choice.width
    short = 7 - 12 / 20
    assert counts == pytest.approx([parameters + attention * span for span in (20.0, short, short, 20.0)])


def test_tupe_costs_its_positions_once_per_micro_batch() -> None:
    """Two products (T, D) x (D, D) and one (T, D) x (D, T): T = 16, D = 256."""
    plain, tupe = PreLN(layers=4), PreLN(layers=4, positions="tupe_r")
    once = 2 * (2 * 16 * 256 * 256) + 2 * 16 * 16 * 256
    full = LayerPlan.full(4)
    frozen = dataclasses.replace(full, trains=(False,) * 4)
    for plans, passes in (([full], 3), ([full, full], 6), ([frozen], 1)):
        without, with_them = (step_flops(choice, 512, plans, 64, 64, 16.0, 16) for choice in (plain, tupe))
        assert with_them - without == passes * once


def test_attention_span() -> None:
    assert attention_span(torch.zeros(3, 7, dtype=torch.int32)) == 7
    assert attention_span(torch.tensor([[0, 0, 0, 1], [0, 1, 2, 3]])) == pytest.approx((9 + 1 + 4) / 8)


@pytest.mark.parametrize("choice", variants(), ids=repr)
def test_shared_parameters_are_counted_once(choice) -> None:  # type: ignore[no-untyped-def]
    built = choice.build(VOCABULARY, 32, causal=False, attention="plain")
    assert count_parameters(built) > VOCABULARY.size * choice.width
    assert count_parameters(torch.nn.ModuleList([built, built])) == count_parameters(built)


def test_a_head_at_rest_saves_the_gradient_of_its_weights() -> None:
    tied, own = PreLN(width=32, head="transform"), PreLN(width=32, head="transform", tied=False)
    full = LayerPlan.full(4)

    def saved(architecture: PreLN, **rests: bool) -> float:
        plan = dataclasses.replace(full, **rests)
        return (head_flops(architecture, 100) - head_flops(architecture, 100, plan)) / 2

    assert saved(tied) == 0
    assert saved(tied, embedding=False) == saved(own, head=False) - 32 * 32 == 32 * 100
    assert saved(tied, head=False) == 32 * 32
    assert saved(own, embedding=False) == 0
