"""Draws follow the softmax, and are a function of seed, sample and position."""

from __future__ import annotations

import torch

from workbench.choices.objectives.draws import FILL, draw_tokens, uniforms


def test_tokens_are_drawn_as_often_as_the_softmax_says() -> None:
    logits = torch.tensor([1.0, -1.0, 0.0, 2.5, -30.0])
    # Every thousandth of the distribution function once: frequencies are exact up to one draw per token.
    uniform = (torch.arange(10_000, dtype=torch.float64) + 0.5) / 10_000
    drawn = draw_tokens(logits.expand(5_000, 5), uniform.view(5_000, 2)).flatten()
    torch.testing.assert_close(drawn.bincount(minlength=5) / 1e4, logits.softmax(0), rtol=0, atol=2e-4)


def test_a_draw_next_to_one_is_still_a_token() -> None:
    logits = torch.randn(3, 50_000, generator=torch.Generator().manual_seed(0))
    drawn = draw_tokens(logits, torch.full((3, 1), 1 - 2.0**-53, dtype=torch.float64))
    assert (drawn < 50_000).all()


def test_numbers_are_uniform_and_belong_to_the_sample() -> None:
    numbers = uniforms(3, FILL, torch.arange(100), 100)
    torch.testing.assert_close(
        numbers.flatten().sort().values, torch.linspace(0, 1, 10_000).double(), atol=0.03, rtol=0
    )
    assert torch.equal(numbers[7:9], uniforms(3, FILL, torch.tensor([7, 8]), 100))
    assert not torch.equal(numbers, uniforms(4, FILL, torch.arange(100), 100))
