"""The one place where a LayerPlan meets blocks: skip, scale, freeze, tap, compile; shared by all architectures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from workbench.base.errors import RecipeError
from workbench.choices.architectures.architecture import Backbone
from workbench.choices.architectures.feed_forward import FeedForward
from workbench.choices.architectures.notes import Notebook
from workbench.choices.architectures.positions import rotary_tables
from workbench.choices.architectures.self_attention import BlockContext, SelfAttention
from workbench.choices.data.tokens import Batch, TokenStore
from workbench.choices.depth.plan import LayerPlan
from workbench.ops.attention import Sight, document_bias
from workbench.ops.dropout import dropped
from workbench.ops.local_attention import banded, chunk_size, windowed
from workbench.ops.packed_attention import PackedAttention
from workbench.ops.recompute import dropout, recomputed

# Shape legend: B rows, T positions, D width, N chosen positions of the whole batch.


def _called(function: Callable[..., Tensor], *args: Any) -> Tensor:
    return function(*args)


def drop(x_D: Tensor, probability: float, training: bool) -> Tensor:
    """Return dropout of x, (..., D) -> (..., D); the identity at probability 0."""
    # Without dropout the training flag must not be read: compiled code would then depend on it.
    return dropped(x_D, probability) if probability and training else x_D


class Block(nn.Module):
    """One layer, (B, T, D) -> (B, T, D): attention, then feed-forward. Subclasses place norms and residuals.

    Attributes:
        dropout: probability on the residual branches.
        recomputes_dropout: keep no masks for the backward pass but draw them again.
    """

    attention: SelfAttention
    feed_forward: FeedForward
    dropout: float
    recomputes_dropout: bool = False

    def drop(self, branch_D: Tensor) -> Tensor:
        """Return dropout of a residual branch, (..., D) -> (..., D)."""
        if self.recomputes_dropout and self.dropout and self.training and torch.is_grad_enabled():
            return dropout(branch_D, self.dropout)
        return drop(branch_D, self.dropout, self.training)

    def forward(self, x_BTD: Tensor, scale: Tensor, context: BlockContext, rows_N: Tensor | None = None) -> Tensor:
        """Return the layer's output, (B, T, D), or (N, D) for the flat positions ``rows_N`` alone.

        Args:
            scale: 0-d fp32 factor on both residual branches.
            rows_N: int64 positions b * T + t; everything after the mixing of positions is computed for them only.
        """
        raise NotImplementedError

    def entropy(self, x_BTD: Tensor, context: BlockContext) -> Tensor:
        """Return mean entropy in nats of this layer's attention, (B, H, T, T), on the layer's input; 0-d."""
        raise NotImplementedError


class Stack(Backbone):
    """Embedding, blocks, final norm, run under a :class:`LayerPlan`.

    What a plan means here, for every architecture:

    * a layer that does not run is the identity and costs nothing;
    * ``scale`` multiplies both residual branches (for post-norm blocks: before the norm);
    * a layer that does not train keeps ``requires_grad`` off and has no gradient buffers; its gradients pass through;
    * frozen layers *below the first layer that trains* run without autograd, and so does the embedding look-up under
      them (a tied head still trains the matrix; position tables added to the input rest);
    * biases on attention logits that have parameters (``position_bias``) belong to no layer: they train as long as
      any layer does, on the gradients of the layers from the first training one upwards;
    * blocks beyond ``plan.layers`` do not exist yet and are not touched.

    Args:
        embedding: token embedding, (vocabulary, D).
        sequence_length: longest row, T.
        causal: attend to the past only.
        rotary_dim: head width for rotary positions; 0 for none.
        position_bias: makes (B, H, T, T) logits from positions and places of [CLS], (B, T) each (see ``positions``).
        cls: id of the [CLS] token, which some position biases treat as a place of its own.
        window: tokens that layers with ``attention.local`` see; 0 when there are none.
    """

    cos: Tensor
    sin: Tensor

    def __init__(
        self,
        blocks: Sequence[Block],
        embedding: nn.Embedding,
        sequence_length: int,
        causal: bool,
        rotary_dim: int = 0,
        *,
        position_bias: nn.Module | None = None,
        cls: int = -1,
        window: int = 0,
    ) -> None:
        super().__init__()
        self.embedding = embedding
        self.blocks = nn.ModuleList(blocks)
        self.final: nn.Module = nn.Identity()
        self.notebook: Notebook | None = None
        self.sequence_length, self.causal, self.rotary = sequence_length, causal, rotary_dim > 0
        self.position_bias, self.cls, self.window = position_bias, cls, window
        self.packed: PackedAttention | None = next((attention.packed for attention in self._attentions()), None)
        self._trains: tuple[bool, ...] | None = None
        if self.rotary:
            for name, table in zip(("cos", "sin"), rotary_tables(sequence_length, rotary_dim), strict=True):
                # Not in checkpoints: two numbers give them back, and a longer row must not clash with a stored table.
                self.register_buffer(name, table, persistent=False)

    def _attentions(self) -> Iterator[SelfAttention]:
        """Yield those of our own blocks; models of others bring their attention along."""
        found = (getattr(block, "attention", None) for block in self.blocks)
        return (attention for attention in found if isinstance(attention, SelfAttention))

    def study(self, text: TokenStore) -> None:
        """See :meth:`Backbone.study`; the notebook does, if there is one."""
        if self.notebook is not None:
            self.notebook.study(text)

    def takes_notes(self) -> bool:
        """Return True in the forward pass of a training step on rows (B, T), where there is a notebook."""
        return self.notebook is not None and self.training and torch.is_grad_enabled()

    def embed(self, tokens_BT: Tensor, batch: Batch) -> Tensor:
        """Return input of the first layer, (B, T, D)."""
        raise NotImplementedError

    def context(
        self, tokens_BT: Tensor, batch: Batch, dense: bool = False, causal: bool | Tensor | Sight | None = None
    ) -> BlockContext:
        """Return the values that the blocks share on this batch: biases (B, H or 1, T, T) and rotary tables (T, E).

        Args:
            tokens_BT: ids as the model sees them; they tell where [CLS] stands.
            dense: with a bias alone, even where attention goes by the documents themselves.
            causal: see :meth:`forward`.

        Raises:
            RecipeError: rows are longer than the model was built for.
        """
        causal = self.causal if causal is None else causal
        sight = causal if isinstance(causal, Sight) else None
        length, past = self._length(batch, causal), causal is True
        # Columns that stand for a place are turned as it is.
        places = slice(length) if sight is None else sight.place_BT
        rotation = (self.cos[places], self.sin[places]) if self.rotary else None
        # Only where a layer reads them: a compiled block would take one more input for nothing.
        tokens = tokens_BT if any(a.values is not None for a in self._attentions()) else None
        if self.packed is not None and not dense:
            # No mask, which grows with the square of T: rows that are too long for one are what these are for.
            layout = self.packed.layout(batch.documents_BT, causal)
            return BlockContext(None, rotation, None, past, layout, tokens)
        bias = self.bias(batch, causal)
        if self.position_bias is not None:
            # One sum per batch, not one per layer.
            added = self.position_bias(batch.positions_BT[:, :length], tokens_BT[:, :length] == self.cls).to(bias.dtype)
            bias = bias + (added if sight is None else sight.between(added))
        return BlockContext(bias, rotation, self._local(bias, causal), past, None, tokens)

    def bias(self, batch: Batch, causal: bool | Tensor | Sight | None = None) -> Tensor:
        """Mask of packed documents, (B, 1, T, T), in the precision of the logits.

        Raises:
            RecipeError: rows are longer than the model was built for.
        """
        self._length(batch, causal)
        device = batch.documents_BT.device.type
        # A wider mask would widen every sum of shape (B, H, T, T) with it.
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else self.embedding.weight.dtype
        return document_bias(batch.documents_BT, self.causal if causal is None else causal, dtype)

    def _length(self, batch: Batch, causal: bool | Tensor | Sight | None) -> int:
        """Return T, checked; of columns that stand for places, the number of these."""
        length = causal.places if isinstance(causal, Sight) else batch.documents_BT.shape[1]
        if length > self.sequence_length:
            raise RecipeError(
                f"rows of {length} tokens do not fit a model built for {self.sequence_length}; "
                f"set data.sequence_length to at least {length}"
            )
        return length

    def _local(self, bias_BHTT: Tensor, causal: bool | Tensor | Sight) -> Tensor | None:
        """Return the bias of layers that see a window only, as a mask or as the band of chunks."""
        if not self.window:
            return None
        assert not isinstance(causal, Sight), "objectives that say who sees whom refuse windows"
        if isinstance(causal, Tensor):
            past, both = (windowed(bias_BHTT, self.window, only_past) for only_past in (True, False))
            return torch.where(causal[:, None, None, None], past, both)
        # Chunks are measured on CPUs only; elsewhere the mask, with which every implementation works.
        chunk = chunk_size(bias_BHTT.shape[-1], self.window) if bias_BHTT.device.type == "cpu" else 0
        if not chunk:
            return windowed(bias_BHTT, self.window, causal)
        return banded(bias_BHTT, chunk, self.window, causal)

    def forward(
        self,
        tokens_BT: Tensor,
        batch: Batch,
        plan: LayerPlan,
        rows_N: Tensor | None = None,
        causal: bool | Tensor | Sight | None = None,
    ) -> Tensor:
        """Return hidden states (B, T, D), or (N, D) of the positions ``rows_N``;
        see :class:`Backbone` for the arguments.

        Raises:
            RecipeError: the plan has more layers than the model, or rows are longer than it was built for.
        """
        grad = self.begin(plan)
        wanted_N = rows_N
        if notes := self.takes_notes():
            # Of all positions.
            rows_N = None
        # Below `first` nobody needs a gradient, so no activation is kept there.
        first = plan.trains.index(True) if True in plan.trains else plan.layers
        # Not simply the last one: the deepest layer may be the one that is dropped.
        last = max([-1, *(layer for layer, run in enumerate(plan.runs) if run)])
        # Biases with parameters learn from every layer that has gradients at all, not from the first one only.
        with torch.set_grad_enabled(grad and first < plan.layers):
            context = self.context(tokens_BT, batch, causal=causal)
        with torch.set_grad_enabled(grad and first == 0):
            x = self.embed(tokens_BT, batch)
        # Every layer is dropped, so no block is left to pick the rows: (B, T, D) -> (N, D) here.
        if rows_N is not None and last < 0:
            x = x.flatten(0, 1)[rows_N]
        for layer, run in enumerate(plan.runs):
            if not run:
                continue
            # A fresh 0-d tensor, not a number: a compiled block would take a number for a constant and recompile.
            scale = torch.full((), plan.scale[layer], device=x.device)
            with torch.set_grad_enabled(grad and layer >= first):
                block, rows = self.blocks[layer], rows_N if layer == last else None
                # Around the compiled block, whose graph then serves both times.
                x = (recomputed if layer in self.recomputes else _called)(block, x, scale, context, rows)
            if self.taps is not None:
                # One number per layer and none of them read here: reading would wait for the device.
                self.taps.append(torch.linalg.vector_norm(x.detach(), dtype=torch.float32) / x.numel() ** 0.5)
        x = self.final(x)
        if notes:
            assert self.notebook is not None
            self.notebook.write(x, batch)
            # (B, T, D) -> (N, D).
            x = x if wanted_N is None else x.flatten(0, 1)[wanted_N]
        return x

    def begin(self, plan: LayerPlan) -> bool:
        """Check a plan, freeze what it freezes; returns whether gradients are wanted on the rows (B, T) to come.

        Raises:
            RecipeError: the plan has more layers than the model.
        """
        if plan.layers > len(self.blocks):
            raise RecipeError(f"the plan has {plan.layers} layers, the model {len(self.blocks)}; build it with more")
        if grad := torch.is_grad_enabled():
            self.freeze(plan)
        return grad

    def freeze(self, plan: LayerPlan) -> None:
        """Switch ``requires_grad`` of the blocks to what ``plan.trains`` says, and drop gradients of frozen ones.

        ``plan.trains`` has shape (layers,). While it stays the same, this costs a comparison; :meth:`forward` calls it.
        """
        if plan.trains == self._trains:
            return
        # Not strict: while a model grows, a plan is shorter than the list of blocks.
        for block, trains in zip(self.blocks, plan.trains, strict=False):
            block.requires_grad_(trains)
            if not trains:
                # None, not zeros: an optimizer decays weights and moments of a gradient that is merely zero.
                block.zero_grad(set_to_none=True)
        self._trains = plan.trains

    def residual_products(self, layer: int) -> list[nn.Linear]:
        """Return output product of the attention (D, D) and of the feed-forward part (D, F) of a layer,
        counted from 0.
        """
        block = self.blocks[layer]
        assert isinstance(block, Block)
        return [block.attention.out, block.feed_forward.down]

    def compile_blocks(self, **options: object) -> None:
        """Compile the layers and the final norm with torch.compile; equal layers share one graph.

        Args:
            **options: as for ``torch.compile``. Shapes never change in a run but for the number of labelled rows
                under a scheduled rate; torch makes that one dimension dynamic when it meets a second number, so a
                schedule costs one more graph, not one for every number.
        """
        # All equal blocks share one cache: training or evaluation, below or above a frozen layer, all rows or some
        # are graphs of their own, and twelve of them exceed torch's limit of eight, beyond which it runs eager.
        torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, 32)
        for module in (*self.blocks, self.final):
            module.compile(**options)

    @torch.no_grad()
    def attention_entropy(self, tokens_BT: Tensor, batch: Batch) -> Sequence[Tensor | None]:
        """Return mean entropy in nats of each layer's attention, (B, H, T, T), on these (few) rows, eager,
        without dropout.
        """
        training = self.training
        self.eval()
        try:
            context, x = self.context(tokens_BT, batch, dense=True), self.embed(tokens_BT, batch)
            scale = torch.ones((), device=x.device)
            entropies: list[Tensor | None] = []
            for block in self.blocks:
                assert isinstance(block, Block)
                entropies.append(block.entropy(x, context))
                # forward, not the call: a compiled block would compile once more for these few rows.
                x = block.forward(x, scale, context)
            return entropies
        finally:
            self.train(training)
