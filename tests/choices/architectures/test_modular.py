"""The shared knobs: every combination packs, counts, compiles, freezes and builds from its JSON as the defaults do."""

from __future__ import annotations

import dataclasses
import itertools
import json
from typing import get_args

import pytest
import torch
from torch._dynamo.utils import counters

from tests.choices.architectures.packing import VOCABULARY, documents, pack
from tests.costs import quick_ones
from workbench.choices.architectures.feed_forward import ACTIVATIONS
from workbench.choices.architectures.modular import Modular, ModularStack
from workbench.choices.architectures.post_ln import PostLN
from workbench.choices.architectures.pre_ln import PreLN
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.ops.attention import ATTENTION
from workbench.ops.local_attention import chunk_size
from workbench.recipes.recipe import Recipe

KINDS: tuple[type[Modular], ...] = (PreLN, PostLN)
SMALL = {"layers": 3, "width": 16, "heads": 2, "dropout": 0.0}
FULL = LayerPlan.full(3)
every_kind = pytest.mark.parametrize("kind", KINDS)
every_position = pytest.mark.parametrize("positions", get_args(Modular.model_fields["positions"].annotation))


def build(choice: Modular, *, causal: bool = False, attention: str = "plain", length: int = 24) -> ModularStack:
    """Every weight random and large: attention that is uniform, or a reset of 0, would hide a mistake."""
    torch.manual_seed(0)
    stack = choice.build(VOCABULARY, length, causal=causal, attention=attention)
    assert isinstance(stack, ModularStack)
    with torch.no_grad():
        for parameter in stack.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return stack.eval()


def assert_packed_equals_alone(stack: ModularStack, pieces: list[torch.Tensor]) -> None:
    packed = pack(pieces)
    together = stack(packed.tokens_BT, packed, FULL)[0].split([len(piece) for piece in pieces])
    for piece, states in zip(pieces, together, strict=True):
        alone = pack([piece])
        torch.testing.assert_close(states, stack(alone.tokens_BT, alone, FULL)[0], rtol=2e-4, atol=2e-5)


def pieces_of(*lengths: int) -> list[torch.Tensor]:
    """Documents, the first of them continued from an earlier row: it has no [CLS]."""
    found = documents(*lengths)
    found[0][0] = 77
    return found


@every_kind
@every_position
@pytest.mark.parametrize("causal", [False, True])
def test_packed_equals_alone_for_positions_and_windows(kind: type[Modular], positions: str, causal: bool) -> None:
    torch.manual_seed(2)
    pieces = pieces_of(5, 11, 1, 7)
    for window, attention in itertools.product((None, 6), sorted(ATTENTION)):
        choice = kind(**SMALL, positions=positions, local_window=window, global_every=2)
        assert_packed_equals_alone(build(choice, causal=causal, attention=attention), pieces)


@every_position
@pytest.mark.parametrize("causal", [False, True])
def test_chunks_of_a_long_row_equal_the_masks_of_short_ones(positions: str, causal: bool) -> None:
    choice = PreLN(**SMALL, positions=positions, local_window=64, global_every=2)
    stack, pieces = build(choice, causal=causal, length=192), pieces_of(90, 70, 32)
    packed = pack(pieces)
    band = stack.context(packed.tokens_BT, packed).local_bias
    assert chunk_size(192, 64) == 32
    assert band is not None
    assert band.shape[2:] == (6, 32, 96)
    assert_packed_equals_alone(stack, pieces)


@every_kind
@pytest.mark.parametrize("norm", get_args(Modular.model_fields["norm"].annotation))
@pytest.mark.parametrize("ffn", sorted(ACTIVATIONS))
def test_packing_counting_and_json_for_norms_parts_and_biases(kind: type[Modular], norm: str, ffn: str) -> None:
    torch.manual_seed(2)
    pieces = pieces_of(9, 6)
    # Every pair of settings of two switches occurs.
    for bias, final_norm, embedding_norm in ((0, 0, 0), (1, 0, 1), (1, 1, 0), (0, 1, 1)):
        switches = {"bias": bool(bias), "final_norm": bool(final_norm), "embedding_norm": bool(embedding_norm)}
        choice = kind(**SMALL, norm=norm, ffn=ffn, **switches)
        # All that an exported model has to go by.
        again = kind.model_validate(json.loads(json.dumps(choice.model_dump(mode="json"))))
        stack = build(again)
        assert_packed_equals_alone(stack, pieces)
        matrices = sum(p.numel() for p in stack.blocks[0].parameters() if p.dim() == 2)
        assert choice.block_parameters() == matrices
        assert any(name.endswith("bias") for name, _ in stack.blocks.named_parameters()) == bias
        assert isinstance(stack.final, torch.nn.Identity) != final_norm
        assert isinstance(stack.embedding_norm, torch.nn.Identity) != embedding_norm


@every_kind
@pytest.mark.parametrize("positions", ["tupe_a", "tupe_r"])
def test_positions_of_no_layer_learn_from_the_layers_that_train(kind: type[Modular], positions: str) -> None:
    """Frozen layers below cost no autograd, and the shared bias still gets the gradient of the layers above."""
    stack, batch = build(kind(**SMALL, positions=positions)), pack(documents(14, 10))
    weight = torch.randn(1, 24, 16)

    def gradients(plan: LayerPlan) -> dict[str, torch.Tensor | None]:
        stack.zero_grad(set_to_none=True)
        states = stack(batch.tokens_BT, batch, plan)
        if states.requires_grad:
            (states * weight).sum().backward()
        return {name: parameter.grad for name, parameter in stack.named_parameters()}

    frozen = gradients(dataclasses.replace(FULL, trains=(False, False, True)))
    assert all(frozen[name] is not None for name in frozen if name.startswith(("position_bias", "blocks.2")))
    assert all(frozen[name] is None for name in frozen if name.startswith(("embedding.", "blocks.0", "blocks.1")))
    # The same as with autograd everywhere, less what came in through the two lower layers.
    stack.freeze(FULL)
    context = stack.context(batch.tokens_BT, batch)
    with torch.no_grad():
        x = stack.embed(batch.tokens_BT, batch)
        for block in stack.blocks[:2]:
            x = block(x, torch.ones(()), context)
    stack.zero_grad(set_to_none=True)
    (stack.final(stack.blocks[2](x, torch.ones(()), context)) * weight).sum().backward()
    torch.testing.assert_close(stack.position_bias.query.weight.grad, frozen["position_bias.query.weight"])
    everything = gradients(dataclasses.replace(FULL, trains=(False, False, False)))
    assert not any(name.startswith(("position_bias", "blocks")) for name in everything if everything[name] is not None)


@every_kind
@pytest.mark.parametrize("causal", [False, True])
def test_tables_of_pairs_and_values_pack_count_and_learn(kind: type[Modular], causal: bool) -> None:
    torch.manual_seed(2)
    choice = kind(**SMALL, bigram_rows=50, value_embeddings=True)
    stack, pieces = build(choice, causal=causal), pieces_of(5, 11, 1, 7)
    assert_packed_equals_alone(stack, pieces)
    tables = {name: p for name, p in stack.named_parameters() if name.startswith("bigrams") or ".values." in name}
    assert sum(p.numel() for p in tables.values()) == (50 + 3 * VOCABULARY.size) * 16
    least = kind(**SMALL).least_parameters(VOCABULARY.size)
    assert choice.least_parameters(VOCABULARY.size) == least + sum(p.numel() for p in tables.values())
    packed = pack(pieces)
    stack(packed.tokens_BT, packed, FULL).square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in tables.values())


def test_a_pair_is_the_token_and_the_one_before_it_in_its_piece() -> None:
    stack = build(PreLN(**SMALL, bigram_rows=1 << 20), causal=True)
    packed = pack(documents(6, 5))
    rows = stack._pairs(packed.tokens_BT, packed.positions_BT)
    other = packed.tokens_BT.clone()
    other[0, [2, 5]] += 1
    changed = (stack._pairs(other, packed.positions_BT) != rows)[0].nonzero().flatten().tolist()
    # The last of a piece has nobody behind it.
    assert changed == [2, 3, 5]
    words, before = VOCABULARY.size, torch.arange(VOCABULARY.size)
    every = torch.cartesian_prod(before, before)
    for urns in (1 << 20, 1 << 14, 9_973):
        stack = build(PreLN(**SMALL, bigram_rows=urns), causal=True)
        found = stack._pairs(every, torch.ones_like(every))[:, 1]
        # Balls in urns: at least as many different rows as a random function would hit.
        assert len(found.unique()) > 0.98 * urns * (1 - (1 - 1 / urns) ** (words * words))


@every_kind
def test_residual_products_start_as_they_are_told(kind: type[Modular]) -> None:
    deep = {"layers": 8, "width": 64, "heads": 2}
    stds = {}
    for init in ("normal", "scaled", "zero"):
        torch.manual_seed(0)
        stack = kind(**deep, residual_init=init).build(VOCABULARY, 24, causal=False, attention="plain")
        stds[init] = [p.weight.std().item() for layer in range(8) for p in stack.residual_products(layer)]
    assert stds["normal"] == pytest.approx([0.02] * 16, rel=0.05)
    assert stds["scaled"] == pytest.approx([0.005] * 16, rel=0.05)
    assert not any(stds["zero"])


@every_position
def test_dropped_layers_scale_and_rows_with_windows(positions: str) -> None:
    """Which layers are local is a matter of their place in the finished model, not of how many run."""
    stack = build(PreLN(**SMALL, positions=positions, local_window=6, global_every=2))
    assert [block.attention.local for block in stack.blocks] == [False, True, False]
    batch, rows = pack(documents(14, 10)), torch.tensor([3, 20])
    plan = dataclasses.replace(FULL, runs=(False, True, True), scale=(1.0, 1.5, 1.0))
    states = stack(batch.tokens_BT, batch, plan)[0]
    torch.testing.assert_close(stack(batch.tokens_BT, batch, plan, rows), states[rows], rtol=1e-4, atol=1e-5)
    entropies = stack.attention_entropy(batch.tokens_BT, batch)
    assert len(entropies) == 3
    assert all(value > 0 for value in entropies)


def test_a_window_hides_what_is_far_and_global_layers_do_not() -> None:
    choice = PreLN(**SMALL, local_window=4, global_every=100)
    pieces = documents(24)
    one = dataclasses.replace(FULL, runs=(False, True, False))
    for plan, reach in ((one, 2), (dataclasses.replace(FULL, runs=(False, True, True)), 4), (FULL, 23)):
        stack = build(choice)
        before = stack(pack(pieces).tokens_BT, pack(pieces), plan)[0]
        other = [pieces[0].clone()]
        other[0][10] = other[0][10] % 400 + 6
        after = stack(pack(other).tokens_BT, pack(other), plan)[0]
        changed = ((before - after).abs().amax(-1) > 1e-6).tolist()
        assert changed == [abs(t - 10) <= reach for t in range(24)]


def test_entropy_of_a_window_is_the_logarithm_of_its_size() -> None:
    """Chunks and masks; queries of zero attend evenly to what they may see, W + 1 positions away from the ends."""
    for length in (24, 192):
        stack = build(PreLN(**SMALL, positions="rope", local_window=8 if length == 24 else 64), length=length)
        with torch.no_grad():
            for block in stack.blocks:
                block.attention.qkv.weight.zero_()
        batch = pack(documents(length))
        half = 4 if length == 24 else 32
        sizes = [min(t, half) + min(length - 1 - t, half) + 1 for t in range(length)]
        expected = torch.tensor(sizes).double().log().mean().item()
        entropies = stack.attention_entropy(batch.tokens_BT, batch)
        assert entropies == pytest.approx([torch.tensor(float(length)).log().item(), expected, expected], rel=1e-5)


@pytest.mark.extended
@pytest.mark.parametrize("positions", quick_ones(["rope", "tupe_r"], "rope"))
def test_local_and_global_layers_are_two_graphs(positions: str) -> None:
    torch._dynamo.reset()
    counters.clear()
    choice = PreLN(**{**SMALL, "layers": 5}, positions=positions, local_window=6, global_every=2)
    stack, batch, plan = build(choice), pack(documents(14, 10)), LayerPlan.full(5)
    eager = stack(batch.tokens_BT, batch, plan)
    stack.compile_blocks(backend="aot_eager")
    compiled = stack(batch.tokens_BT, batch, plan)
    torch.testing.assert_close(compiled, eager, rtol=1e-4, atol=1e-5)
    compiled.sum().backward()
    assert counters["stats"]["unique_graphs"] == 3  # two kinds of blocks and the final norm


def test_impossible_combinations_name_the_way_out() -> None:
    with pytest.raises(ValueError, match=r"architecture.positions: objective 'masked' sees both sides.*choose 'rope'"):
        Recipe(architecture={"kind": "pre_ln", "positions": "none"})
    assert Recipe(architecture={"kind": "pre_ln", "positions": "none"}, objective="causal")
    with pytest.raises(ValueError, match=r"architecture.heads: 12 heads of width 3 cannot rotate pairs"):
        Recipe(architecture={"kind": "post_ln", "positions": "rope", "width": 36, "heads": 12})
    with pytest.raises(ValueError, match=r"architecture.local_window: .* multiple of 2"):
        Recipe(architecture={"kind": "pre_ln", "local_window": 7})


@pytest.mark.parametrize(("width", "heads"), [(64, 64), (64, 7), (96, 36), (250, 4)])
def test_every_number_of_heads_that_is_offered_works(width: int, heads: int) -> None:
    shape = {"kind": "pre_ln", "positions": "rope", "width": width}
    with pytest.raises(ValueError, match="use one of") as refused:
        Recipe(architecture={**shape, "heads": heads})
    offered = json.loads(str(refused.value).partition("use one of ")[2].partition(", or other")[0])
    assert offered
    assert all(Recipe(architecture={**shape, "heads": each}) for each in offered)


def test_a_batch_without_any_cls_resets_nothing() -> None:
    stack = build(PreLN(**SMALL, positions="tupe_a"))
    tokens = torch.full((1, 8), 99)
    batch = Batch(tokens, torch.arange(8)[None], torch.zeros(1, 8, dtype=torch.int32), torch.zeros(1))
    bias = stack.context(tokens, batch).bias_BHTT
    with torch.no_grad():
        stack.position_bias.to_cls.add_(5)
        stack.position_bias.from_cls.add_(5)
    assert torch.equal(stack.context(tokens, batch).bias_BHTT, bias)
