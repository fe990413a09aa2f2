"""What every registered architecture must hold, without exceptions by name."""

from __future__ import annotations

import pytest
import torch

from tests.choices.architectures.packing import SMALL, VOCABULARY, documents, label, pack, variants
from workbench.choices.architectures.architecture import Architecture, Backbone
from workbench.choices.choice import registry
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.ops.attention import ATTENTION
from workbench.recipes.recipe import Recipe

every_variant = pytest.mark.parametrize("choice", variants(), ids=lambda choice: f"{choice.kind}-{label(choice)}")
both_directions = pytest.mark.parametrize("causal", [False, True], ids=["both_sides", "causal"])
FULL = LayerPlan.full(SMALL["layers"])


def build(choice: Architecture, *, causal: bool = False, attention: str = "plain", spread: float = 1.0) -> Backbone:
    """A backbone whose matrices are ``spread`` times their initial size: attention must not be uniform to be tested."""
    torch.manual_seed(0)
    backbone = choice.build(VOCABULARY, 48, causal=causal, attention=attention)
    with torch.no_grad():
        for parameter in backbone.parameters():
            if parameter.dim() == 2:
                # What starts at zero would hide what it multiplies.
                parameter.normal_(std=0.02 * spread) if not parameter.any() else parameter.mul_(spread)
    return backbone.eval()


@every_variant
@both_directions
@pytest.mark.parametrize("attention", sorted(ATTENTION))
def test_packed_rows_equal_documents_alone(choice: Architecture, causal: bool, attention: str) -> None:
    backbone = build(choice, causal=causal, attention=attention, spread=6.0)
    pieces = documents(5, 17, 1, 11)
    packed = pack(pieces)
    together = backbone(packed.tokens_BT, packed, FULL)[0].split([len(piece) for piece in pieces])
    for piece, states in zip(pieces, together, strict=True):
        alone = pack([piece])
        torch.testing.assert_close(states, backbone(alone.tokens_BT, alone, FULL)[0], rtol=1e-4, atol=1e-5)


@every_variant
def test_rows_with_masks_of_their_own_equal_batches_of_one_mask(choice: Architecture) -> None:
    if not choice.switches_mask():
        pytest.skip("its mask stays as it was built")
    backbone, row = build(choice, spread=6.0), pack(documents(5, 17, 11))
    rows = Batch(*(torch.cat([each] * 3) for each in row))
    past, both = (backbone(row.tokens_BT, row, FULL, None, causal) for causal in (True, False))
    mixed = backbone(rows.tokens_BT, rows, FULL, None, torch.tensor([True, False, True]))
    torch.testing.assert_close(mixed, torch.cat([past, both, past]), rtol=1e-4, atol=1e-5)
    assert torch.equal(backbone(row.tokens_BT, row, FULL), both)
    assert not torch.allclose(past, both, atol=1e-3)


@every_variant
def test_a_document_does_look_at_itself(choice: Architecture) -> None:
    """Without this, a model that attends nowhere would pass the packing test."""
    backbone, pieces = build(choice, spread=6.0), documents(9, 9)
    before = backbone(pack(pieces).tokens_BT, pack(pieces), FULL)[0]
    pieces[1][8] = pieces[1][8] % 400 + 6
    after = backbone(pack(pieces).tokens_BT, pack(pieces), FULL)[0]
    changed = (before - after).abs().amax(-1) > 1e-4
    assert changed.tolist() == [False] * 9 + [True] * 9


@every_variant
def test_causal_models_see_no_future(choice: Architecture) -> None:
    backbone, pieces = build(choice, causal=True, spread=6.0), documents(16)
    before = backbone(pack(pieces).tokens_BT, pack(pieces), FULL)[0]
    pieces[0][10] = pieces[0][10] % 400 + 6
    after = backbone(pack(pieces).tokens_BT, pack(pieces), FULL)[0]
    assert torch.equal(before[:10], after[:10])
    assert ((before - after).abs().amax(-1)[10:] > 1e-4).all()


@every_variant
def test_chosen_rows_equal_the_same_rows_of_all(choice: Architecture) -> None:
    backbone, batch = build(choice, spread=6.0), pack(documents(20, 12))
    rows = torch.tensor([31, 0, 7, 7])
    for runs in [(True, True, True), (True, True, False), (False, False, False)]:
        plan = LayerPlan(runs, (1.0,) * 3, (True,) * 3, (1.0,) * 3, 3)
        everything = backbone(batch.tokens_BT, batch, plan)[0]
        torch.testing.assert_close(backbone(batch.tokens_BT, batch, plan, rows), everything[rows], rtol=1e-5, atol=1e-6)


@every_variant
def test_gradients_are_finite_and_reach_every_parameter(choice: Architecture) -> None:
    backbone, batch = build(choice, spread=3.0).train(), pack(documents(20, 12))
    states = backbone(batch.tokens_BT, batch, FULL)
    (states * torch.randn_like(states)).mean().backward()
    for name, parameter in backbone.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert parameter.grad.abs().sum() > 0, name


@every_variant
def test_bf16_autocast_stays_near_fp32(choice: Architecture) -> None:
    backbone, batch = build(choice, spread=2.0), pack(documents(20, 12))
    exact = backbone(batch.tokens_BT, batch, FULL)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = backbone(batch.tokens_BT, batch, FULL)
    assert (rounded.float() - exact).norm() / exact.norm() < 0.05


@every_variant
def test_block_parameters_are_the_matrices_of_a_block(choice: Architecture) -> None:
    block = build(choice).blocks[0]
    matrices = sum(parameter.numel() for parameter in block.parameters() if parameter.dim() == 2)
    assert choice.block_parameters() == matrices
    assert 0 < choice.mixing_parameters() <= matrices


@every_variant
def test_building_is_deterministic_and_small_at_the_start(choice: Architecture) -> None:
    first, second = build(choice).state_dict(), build(choice).state_dict()
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert first["embedding.weight"].std() == pytest.approx(0.02, rel=0.1)


@pytest.mark.parametrize("kind", sorted(registry("architecture")))
def test_dropout_acts_in_training_only(kind: str) -> None:
    backbone = build(registry("architecture")[kind](**SMALL, dropout=0.5))
    batch = pack(documents(20, 12))
    assert torch.equal(backbone(batch.tokens_BT, batch, FULL), backbone(batch.tokens_BT, batch, FULL))
    backbone.train()
    assert not torch.equal(backbone(batch.tokens_BT, batch, FULL), backbone(batch.tokens_BT, batch, FULL))


@pytest.mark.parametrize("kind", sorted(registry("architecture")))
def test_heads_that_do_not_divide_the_width_are_named(kind: str) -> None:
    with pytest.raises(ValueError, match=r"architecture.heads: 5 heads do not divide width 32; use one of \[1, 2, 4"):
        Recipe(architecture={"kind": kind, "width": 32, "heads": 5})


@pytest.mark.parametrize("kind", sorted(registry("architecture")))
def test_rows_longer_than_the_model_are_refused(kind: str) -> None:
    backbone, batch = build(registry("architecture")[kind](**SMALL)), pack(documents(49))
    with pytest.raises(ValueError, match="rows of 49 tokens do not fit a model built for 48"):
        backbone(batch.tokens_BT, batch, FULL)
