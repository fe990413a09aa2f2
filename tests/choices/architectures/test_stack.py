"""What a LayerPlan means to every architecture of our own blocks, and that compiled blocks share their graphs."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from torch._dynamo.utils import counters

from tests.choices.architectures.packing import SMALL, VOCABULARY, documents, pack
from workbench.choices.architectures.modular import Modular
from workbench.choices.architectures.stack import Stack
from workbench.choices.choice import registry
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan

# By class: stacks of transformers' layers keep the same contract with parts of other names (test_transformers.py).
OURS = sorted(kind for kind, choice in registry("architecture").items() if issubclass(choice, Modular))
every_kind = pytest.mark.parametrize("kind", OURS)
FULL = LayerPlan.full(3)


def build(kind: str, **knobs: object) -> Stack:
    torch.manual_seed(0)
    choice = registry("architecture")[kind](**{**SMALL, "dropout": 0.0, **knobs})
    return choice.build(VOCABULARY, 32, causal=False, attention="plain")


def batch() -> Batch:
    torch.manual_seed(1)
    return pack(documents(20, 12))


def backward(stack: Stack, plan: LayerPlan) -> None:
    rows = batch()
    stack.zero_grad(set_to_none=True)
    states = stack(rows.tokens_BT, rows, plan)
    if states.requires_grad:
        (states * torch.linspace(-1, 1, states.numel()).view_as(states)).sum().backward()


def with_gradient(stack: Stack) -> set[str]:
    return {name for name, parameter in stack.named_parameters() if parameter.grad is not None}


@every_kind
def test_a_layer_that_does_not_run_is_the_identity(kind: str) -> None:
    stack, rows = build(kind), batch()
    plan = dataclasses.replace(FULL, runs=(True, False, True))
    states = stack(rows.tokens_BT, rows, plan)
    del stack.blocks[1]
    torch.testing.assert_close(states, stack(rows.tokens_BT, rows, LayerPlan.full(2)), rtol=0, atol=0)


@every_kind
def test_a_skipped_layer_computes_nothing(kind: str) -> None:
    stack, calls = build(kind), []
    for layer, block in enumerate(stack.blocks):
        block.register_forward_hook(lambda *_, layer=layer: calls.append(layer))
    backward(stack, dataclasses.replace(FULL, runs=(False, True, True)))
    assert calls == [1, 2]
    assert not any(name.startswith("blocks.0.") for name in with_gradient(stack))


@every_kind
def test_scale_multiplies_the_branches(kind: str) -> None:
    """Scaling by s equals scaling the weights (and biases) of both branches' last products by s."""
    stack, rows = build(kind), batch()
    scaled = stack(rows.tokens_BT, rows, dataclasses.replace(FULL, scale=(1.0, 1.7, 1.0)))
    assert not torch.allclose(scaled, stack(rows.tokens_BT, rows, FULL))
    with torch.no_grad():
        for last in (stack.blocks[1].attention.out, stack.blocks[1].feed_forward.down):
            for parameter in last.parameters():
                parameter.mul_(1.7)
    torch.testing.assert_close(scaled, stack(rows.tokens_BT, rows, FULL), rtol=1e-5, atol=1e-5)


@every_kind
def test_frozen_layers_below_run_without_autograd(kind: str) -> None:
    stack = build(kind)
    backward(stack, FULL)
    backward(stack, dataclasses.replace(FULL, trains=(False, False, True)))
    names = with_gradient(stack)
    assert {name.split(".")[1] for name in names if name.startswith("blocks.")} == {"2"}
    assert not any(name.startswith(("embedding", "positions", "token_types")) for name in names)
    assert all(not p.requires_grad and p.grad is None for b in stack.blocks[:2] for p in b.parameters())


@every_kind
def test_frozen_layers_above_pass_gradients_on(kind: str) -> None:
    stack = build(kind)
    backward(stack, FULL)
    expected = stack.blocks[0].feed_forward.up.weight.grad.clone()
    backward(stack, dataclasses.replace(FULL, trains=(True, False, True)))
    assert {name.split(".")[1] for name in with_gradient(stack) if name.startswith("blocks.")} == {"0", "2"}
    torch.testing.assert_close(stack.blocks[0].feed_forward.up.weight.grad, expected)


@every_kind
def test_thawed_layers_train_again_and_evaluation_changes_nothing(kind: str) -> None:
    stack, rows = build(kind), batch()
    frozen = dataclasses.replace(FULL, trains=(False, True, True))
    backward(stack, frozen)
    with torch.no_grad():
        stack(rows.tokens_BT, rows, FULL)
    assert not any(parameter.requires_grad for parameter in stack.blocks[0].parameters())
    backward(stack, FULL)
    assert with_gradient(stack) == {name for name, _ in stack.named_parameters()}


@every_kind
def test_layers_beyond_the_plan_do_not_exist_yet(kind: str) -> None:
    stack, rows = build(kind), batch()
    short = LayerPlan((True, True), (1.0, 1.0), (True, True), (1.0, 1.0), 3)
    states = stack(rows.tokens_BT, rows, short)
    dropped = stack(rows.tokens_BT, rows, dataclasses.replace(FULL, runs=(True, True, False)))
    assert torch.equal(states, dropped)


@every_kind
def test_taps_hold_the_size_of_each_layer_that_ran(kind: str) -> None:
    stack, rows = build(kind), batch()
    seen: list[torch.Tensor] = []
    for block in stack.blocks:
        block.register_forward_hook(lambda _module, _args, output: seen.append(output.detach()))
    stack.taps = []
    stack(rows.tokens_BT, rows, dataclasses.replace(FULL, runs=(True, False, True)))
    expected = [output.double().square().mean().sqrt().item() for output in seen]
    assert [tap.item() for tap in stack.taps] == pytest.approx(expected, rel=1e-5)
    assert len(expected) == 2


@every_kind
def test_attention_entropy_is_that_of_the_attention_rows(kind: str) -> None:
    """With all queries zero, attention is uniform over the document: the entropy is the mean of log(length)."""
    stack, rows = build(kind, dropout=0.3).train(), batch()
    with torch.no_grad():
        for block in stack.blocks:
            block.attention.qkv.weight.zero_()
    expected = (20 * math.log(20) + 12 * math.log(12)) / 32
    assert stack.attention_entropy(rows.tokens_BT, rows) == pytest.approx([expected] * 3, rel=1e-5)
    assert stack.training


@every_kind
@pytest.mark.process
def test_equal_layers_share_one_compiled_graph(kind: str) -> None:
    torch._dynamo.reset()
    counters.clear()
    stack, rows = build(kind), batch()
    eager = [stack(rows.tokens_BT, rows, dataclasses.replace(FULL, scale=s)) for s in ((1.0,) * 3, (1.0, 1.3, 1.6))]
    compiled_modules = 1 + (not isinstance(stack.final, torch.nn.Identity))  # one block, and the final norm if any
    # Graphs are made and counted before any backend sees them; this one needs no compiler.
    stack.compile_blocks(backend="aot_eager")
    for scale, expected in zip(((1.0,) * 3, (1.0, 1.3, 1.6)), eager, strict=True):
        states = stack(rows.tokens_BT, rows, dataclasses.replace(FULL, scale=scale))
        torch.testing.assert_close(states, expected, rtol=1e-4, atol=1e-5)
        states.sum().backward()
    stack(rows.tokens_BT, rows, dataclasses.replace(FULL, runs=(False, True, False))).sum().backward()
    stack.attention_entropy(rows.tokens_BT, rows)
    assert counters["stats"]["unique_graphs"] == compiled_modules
    # Asking for some rows only makes one more graph, of the block that runs last, whichever that is.
    for runs in ((True, True, True), (True, True, False), (True, False, False)):
        plan = dataclasses.replace(FULL, runs=runs)
        stack(rows.tokens_BT, rows, plan, torch.tensor([1, 5, 30])).sum().backward()
    assert counters["stats"]["unique_graphs"] == 2 * compiled_modules
