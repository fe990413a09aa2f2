"""Moments in 8 bits or on the host: what a code may lose, and that an optimizer takes its own steps with them."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from workbench.base.errors import RecipeError
from workbench.choices.choice import registry
from workbench.choices.execution.optimizer_states import (
    FEWEST,
    SPAN,
    STORAGES,
    EightBit,
    OnHost,
    StoredMoments,
    decode,
    encode,
    stored_bytes,
)
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.ops.parameter_groups import parameter_groups
from workbench.recipes.recipe import Recipe
from workbench.training.checkpoint import restore_optimizer

CPU = torch.device("cpu")
ABLE = [kind for kind, choice in registry("optimizer").items() if getattr(choice, "moments", ())]
every_able = pytest.mark.parametrize("kind", ABLE)


@pytest.mark.parametrize("shape", [(3, 5), (SPAN,), (SPAN * 3 + 7,), (1030, 257)])
@pytest.mark.parametrize("signed", [True, False])
def test_codes_are_near_and_exact_at_the_ends(shape: tuple[int, ...], signed: bool) -> None:
    torch.manual_seed(0)
    x = torch.randn(shape) * torch.logspace(-6, 3, shape[-1])
    x = x if signed else x.square()
    x.view(-1)[1] = 0.0
    codes, scales = encode(x, 0.5, signed)
    back = decode(codes, scales)
    assert codes.shape == back.shape == x.shape
    assert codes.element_size() == 1
    for row, seen in zip(x.view(-1).split(SPAN), back.view(-1).split(SPAN), strict=True):
        largest = row.abs().max()
        # Half a code, as a share of the largest: 127 steps of a square root, 255 of a fourth root.
        reach = 2 * (row.abs() / largest).sqrt() / 254 if signed else 4 * (row / largest).pow(0.75) / 510
        assert bool(((row - seen).abs() <= largest * (1.02 * reach + 1e-4)).all())
        torch.testing.assert_close(seen.abs().max(), largest, rtol=1e-6, atol=0)
    assert back.view(-1)[1] == 0.0
    assert signed or bool((back[x > 0] > 0).all())


def test_nothing_and_the_smallest_number_survive() -> None:
    for x in (torch.zeros(SPAN), torch.full((SPAN,), 1e-38)):
        for signed in (True, False):
            torch.testing.assert_close(decode(*encode(x, 0.99, signed)), x)


def test_a_mean_that_decays_by_less_than_a_code_still_decays() -> None:
    """0.999 v each step is a twelfth of a code at most: with an offset of a half it would stand still for ever."""
    torch.manual_seed(0)
    exact = torch.rand(SPAN) + 0.5
    # One number stays what it is, so that the scale does.
    exact[0] = 2.0
    stored, storage = storage_of(exact), EightBit()
    standing = decode(*encode(exact, 0.5, signed=False))
    before = standing.clone()
    for step in range(1, 500):
        value = storage.give("x_sq", stored, CPU)
        value[1:] *= 0.999
        stored = storage.keep("x_sq", value, step)
        standing[1:] *= 0.999
        standing = decode(*encode(standing, 0.5, signed=False))
    wanted, found = exact[1:] * 0.999**499, storage.give("x_sq", stored, CPU)[1:]
    assert (found / wanted).log().abs().mean() < 0.05
    assert torch.equal(standing, before)


def storage_of(x: Tensor) -> dict[str, Tensor]:
    return EightBit().keep("x_sq", x, 0)


def layers() -> nn.Sequential:
    torch.manual_seed(1)
    # A group of several chunks is tested by the patch below; one tensor is below the fewest numbers, one has a tail.
    return nn.Sequential(nn.Linear(32, 300), nn.Tanh(), nn.Linear(300, 33, bias=False), nn.Tanh(), nn.Linear(33, 1))


def optimizer_of(model: nn.Module, kind: str, storage: str | None) -> torch.optim.Optimizer:
    choice = registry("optimizer")[kind](lr=2e-3)
    assert isinstance(choice, OptimizerChoice)
    inner = choice.build(parameter_groups(model, 0.01), CPU)
    return inner if storage is None else StoredMoments(inner, choice.moments, STORAGES[storage]())


def fitted(kind: str, storage: str | None, steps: int = 60) -> tuple[list[float], nn.Module, torch.optim.Optimizer]:
    model = layers()
    optimizer = optimizer_of(model, kind, storage)
    inputs = torch.randn(128, 32, generator=torch.Generator().manual_seed(2))
    losses = []
    for _ in range(steps):
        loss = (model(inputs) - inputs[:, :1].sin()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model, optimizer


@every_able
def test_losses_in_8_bits_follow_those_in_32(kind: str) -> None:
    whole, small = fitted(kind, None)[0], fitted(kind, "8bit")[0]
    assert whole[-1] < 0.8 * whole[0]
    assert small[0] == whole[0]
    assert small[-1] == pytest.approx(whole[-1], rel=0.1, abs=0.01 * whole[0])


@every_able
def test_a_storage_that_loses_nothing_changes_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunk by chunk, the inner optimizer takes the very steps it would take alone."""
    monkeypatch.setattr("workbench.choices.execution.optimizer_states.TOGETHER", 5000)
    (whole, model, _), (stored, other, optimizer) = fitted(kind, None, 10), fitted(kind, "host", 10)
    assert whole == stored
    assert all(map(torch.equal, model.parameters(), other.parameters()))
    assert not optimizer.inner.state  # type: ignore[attr-defined]


@every_able
def test_stored_states_take_what_is_said(kind: str) -> None:
    _, model, whole = fitted(kind, None, 2)
    _, other, small = fitted(kind, "8bit", 2)
    moments = registry("optimizer")[kind].moments  # type: ignore[attr-defined]
    for ours, theirs in zip(other.parameters(), model.parameters(), strict=True):
        for name in moments:
            if name in whole.state[theirs]:
                held = [small.state[ours][key] for key in (name, f"{name}_scale") if key in small.state[ours]]
                assert sum(t.numel() * t.element_size() for t in held) == stored_bytes("8bit", theirs.numel())
    assert stored_bytes("8bit", 1 << 20) < 0.26 * stored_bytes("fp32", 1 << 20)
    assert stored_bytes("8bit", FEWEST - 1) == stored_bytes("fp32", FEWEST - 1)
    assert stored_bytes("host", 1 << 20) == 0


@pytest.mark.parametrize("storage", STORAGES)
def test_tensors_without_a_gradient_keep_weight_and_state(storage: str) -> None:
    _, model, optimizer = fitted("adamw", storage, 2)
    rests = model[0].weight  # type: ignore[union-attr]
    before = copy.deepcopy(optimizer.state[rests]), rests.detach().clone()
    for parameter in model.parameters():
        parameter.grad = None if parameter is rests else torch.ones_like(parameter)
    optimizer.step()
    assert torch.equal(rests, before[1])
    assert optimizer.state[rests].keys() == before[0].keys()
    assert all(
        torch.equal(torch.as_tensor(v), torch.as_tensor(before[0][k])) for k, v in optimizer.state[rests].items()
    )
    assert model[2].weight.grad is not None  # type: ignore[union-attr]


def test_what_the_inner_optimizer_offers_is_found() -> None:
    assert "lans" in ABLE
    optimizer = optimizer_of(layers(), "lans", "8bit")
    assert optimizer.path == optimizer.inner.path  # type: ignore[attr-defined]
    assert not hasattr(optimizer, "curvature")


def test_states_on_the_host_are_there() -> None:
    moment = torch.randn(70, 70)
    state = dict(OnHost().keep("exp_avg", moment, 1))
    assert state["exp_avg"].device == CPU
    assert torch.equal(OnHost().give("exp_avg", state, CPU), moment)
    assert not state


def test_a_resumed_run_leaves_them_there() -> None:
    """All at once they would not fit: a device without numbers stands for a GPU."""
    for shape, storage in (((64, 64), "host"), ((8,), "host"), ((64, 64), "8bit")):
        weight = nn.Parameter(torch.zeros(shape, device="meta"))
        inner = torch.optim.AdamW([{"params": [weight], "names": ["w"]}])
        optimizer = StoredMoments(inner, ("exp_avg", "exp_avg_sq"), STORAGES[storage]())
        restore_optimizer(optimizer, {"w/exp_avg": torch.ones(shape)}, {"scalars": {}, "groups": [{}]})
        there = optimizer.state[weight]["exp_avg"].device.type
        assert there == ("cpu" if storage == "host" else "meta")
        # Its own step brings it.
        state = optimizer._given(dict(optimizer.state[weight]), weight.device)
        assert state["exp_avg"].device.type == "meta"


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_a_gpus_moments_wait_in_pinned_memory() -> None:
    weight = nn.Parameter(torch.zeros(128, 128, device="cuda"))
    optimizer = StoredMoments(torch.optim.AdamW([weight], fused=True), ("exp_avg", "exp_avg_sq"), OnHost())
    for _ in range(2):
        weight.grad = torch.ones_like(weight)
        optimizer.step()
    assert optimizer.state[weight]["exp_avg"].is_pinned()
    assert optimizer.state[weight]["exp_avg"].device == CPU


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            {"optimizer": "lamb", "execution.optimizer_states": "8bit"},
            r"execution\.optimizer_states: '8bit': what lamb keeps between steps is kept in float32 alone; "
            r"use 'fp32', or optimizer adamw, lans",
        ),
        (
            {"execution.optimizer_states": "host", "execution.device": "cpu"},
            r"execution\.optimizer_states: 'host' moves states out of a GPU's memory.*use '8bit' or 'fp32'",
        ),
        (
            {
                "execution.optimizer_states": "8bit",
                "depth": {"kind": "grow_width", "state": "copy"},
                "architecture": {"heads": 4},
            },
            r"'8bit': grow_width widens the moments.*set depth\.state to 'reset'",
        ),
        (
            {"execution.optimizer_states": "8bit", "execution.precision": "fp16", "execution.device": "cuda"},
            r"'8bit': under fp16 a step that overflows is undone.*or execution\.precision 'bf16'",
        ),
        ({"execution.optimizer_states": "4bit"}, r"execution\.optimizer_states.*'fp32', '8bit' or 'host'"),
    ],
)
def test_what_cannot_be_stored_is_refused(change: dict[str, object], why: str) -> None:
    with pytest.raises(RecipeError, match=why):
        Recipe().with_(**change)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device, which 'auto' takes")
def test_the_host_is_refused_where_auto_means_a_cpu() -> None:
    with pytest.raises(RecipeError, match="use '8bit' or 'fp32'"):
        Recipe(execution={"optimizer_states": "host", "kind": "native"}).engine()


def test_widening_with_fresh_states_is_fine() -> None:
    Recipe().with_(
        execution={"optimizer_states": "8bit"},
        depth={"kind": "grow_width", "state": "reset"},
        architecture={"heads": 4},
    )
