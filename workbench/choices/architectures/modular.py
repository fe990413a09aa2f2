"""Share one set of independent knobs, and the stack that is built from them, between pre_ln and post_ln."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.architectures.feed_forward import ACTIVATIONS, FeedForward, gated_width
from workbench.choices.architectures.norms import LayerNorm, RMSNorm
from workbench.choices.architectures.notes import NoNotes, Notes
from workbench.choices.architectures.positions import position_bias, sinusoids
from workbench.choices.architectures.self_attention import SelfAttention
from workbench.choices.architectures.stack import Block, Stack, drop
from workbench.choices.choice import Problem, knob, one_of
from workbench.choices.data.tokens import Batch, Vocabulary

# Shape legend: B rows, T positions, D width, H heads, E width of a head.

Positions = Literal["learned", "sinusoidal", "rope", "alibi", "tupe_a", "tupe_r", "none"]
POSITIONS_HELP = "how positions enter: added to the input, as a rotation of queries and keys, or as a bias on attention"
ResidualInit = Literal["normal", "scaled", "zero"]
RESIDUAL_HELP = "projections into the residual stream start at normal(0, 0.02), at that over sqrt(2 layers), or at zero"
Norm = Literal["layer_norm", "rms_norm"]
Activation = Literal["gelu", "relu2", "relu", "silu", "geglu", "swiglu"]


class Modular(Architecture):
    """Base of the architectures made of our own parts; kinds differ in where a block normalises, and in defaults."""

    positions: Positions = knob("rope", POSITIONS_HELP)
    norm: Norm = knob("rms_norm", "normalisation")
    final_norm: bool = knob(True, "normalise once more after the last block")
    embedding_norm: bool = knob(False, "normalise the sum of the embeddings")
    ffn: Activation = knob("relu2", "feed-forward activation; the last two are gated")
    bias: bool = knob(False, "biases in every product of the blocks and in layer_norm")
    local_window: int | None = knob(
        None, "window of the local layers; empty means all layers see the whole document", unit="tokens", ge=2,
        multiple_of=2, scale="log",
    )  # fmt: skip
    global_every: int = knob(3, "with a window, every n-th layer, the first included, sees whole documents", ge=1)
    dropout: float = knob(0.0, "dropout of embeddings and residual branches", ge=0, lt=1)
    residual_init: ResidualInit = knob("normal", RESIDUAL_HELP)
    bigram_rows: int | None = knob(
        None, "rows of a table of hashed pairs (previous token, token), added to the embedding; empty: none", ge=1,
        le=1 << 24, scale="log",
    )  # fmt: skip
    value_embeddings: bool = knob(False, "each layer adds the token's row of its own table to the attention values")
    notes: one_of(Notes) = knob(  # type: ignore[valid-type]
        help="what the model keeps of the text beside its weights, in training", default_factory=NoNotes
    )

    segments: ClassVar[bool] = False
    """True if BERT's segment embedding is part of the input."""
    attention_dropout: ClassVar[bool] = False
    """True if ``dropout`` falls on attention probabilities, too."""
    layer_norm_eps: ClassVar[float] = 1e-5

    def head_widths(self) -> tuple[int, str, str]:
        """Rotary positions turn the E numbers of a head in pairs."""
        if self.positions != "rope":
            return super().head_widths()
        return 2, "cannot rotate pairs", ", or other positions, for example 'alibi'"

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse rows (B, T) whose order nothing tells, and what any architecture finds."""
        yield from super().problems(recipe)
        yield from self.notes.problems(recipe)
        if self.positions == "none" and not recipe.objective.causal:
            yield Problem(
                "architecture.positions",
                f"objective '{recipe.objective.kind}' sees both sides, and without positions a row is a bag of words; "
                "choose 'rope' or another way to tell them, or objective 'causal', whose mask gives an order",
            )

    def problems_together(self, recipe: Any, processes: int) -> Iterator[Problem]:
        """Refuse notes of rows (B, T) that each process takes for itself."""
        yield from self.notes.problems_together(recipe, processes)

    def needs_logits(self) -> str:
        """Return positions that are told to the logits (B, H, T, T), windows on them, dropout of what comes of them."""
        if self.positions in ("alibi", "tupe_a", "tupe_r"):
            return f"architecture.positions '{self.positions}' adds to them"
        if self.local_window is not None:
            return "architecture.local_window hides some of them"
        return "architecture.dropout falls on probabilities" if self.attention_dropout and self.dropout else ""

    def keeps_notes(self) -> bool:
        """Return whether it does (rows (B, T) tell what of)."""
        return not isinstance(self.notes, NoNotes)

    def switches_mask(self) -> bool:
        """Return whether it can see the past alone in some rows (B, T): its mask is an input."""
        return True

    def widens(self) -> bool:
        """Return True if k times the width D and the heads H can compute the same function.

        Not with positions that are constants of D or H, and not without a norm of the model's own before the logits
        (N, V), which takes up the factor k.
        """
        normed = self.final_norm or self.head == "transform" or not self.silent_is_identity()
        return normed and self.positions not in ("alibi", "sinusoidal")

    def ffn_widens(self) -> bool:
        """Every activation here works unit by unit, so an inner width F of copies computes the same."""
        return True

    def is_local(self, layer: int) -> bool:
        """Return True if a layer, counted from 0, sees only ``local_window`` tokens of the T."""
        return self.local_window is not None and layer % self.global_every != 0

    def layer_span(self, layer: int, span: float) -> float:
        """Return positions that a position of this layer sees, in tokens,
        where whole documents would be ``span`` tokens long.

        A window that reaches h = W / 2 to both sides lets through 2 h + 1 - h (h + 1) / s of a document of s > h
        tokens, on average over its positions. Exact where all pieces are equally long, else slightly too many: the
        formula is concave in s. A causal window of W is counted the same.
        """
        if not self.is_local(layer) or self.local_window is None:
            return span
        half = self.local_window // 2
        return 2 * half + 1 - half * (half + 1) / span if span > half + 1 else span

    def least_parameters(self, tokens: int) -> int:
        """As of every architecture, and the tables (rows, D) of pairs and (tokens, D) of values."""
        tables = (self.bigram_rows or 0) + self.layers * tokens * self.value_embeddings
        return super().least_parameters(tokens) + tables * self.width

    def block_parameters(self) -> int:
        """Return matrices (D, 3D), (D, D) and those of the feed-forward part: three of them when it is gated,
        else two.
        """
        gated = ACTIVATIONS[self.ffn][1]
        feed = 3 * self.width * gated_width(self.inner_width) if gated else 2 * self.width * self.inner_width
        return 4 * self.width**2 + feed

    def shared_flops(self, length: int) -> float:
        """Return TUPE's products for positions: two of (T, D) x (D, D), then (T, D) x (D, T) over all heads; else 0."""
        if self.positions not in ("tupe_a", "tupe_r"):
            return 0.0
        return 4.0 * length * self.width**2 + 2.0 * length**2 * self.width

    def build(self, vocabulary: Vocabulary, sequence_length: int, *, causal: bool, attention: str) -> ModularStack:
        """Return a :class:`ModularStack` in fp32: tokens (B, T) -> states (B, T, D)."""
        return ModularStack(self, vocabulary, sequence_length, causal, attention)

    def build_norm(self) -> nn.Module:
        """Return a fresh normalisation of the kind that was chosen, (..., D) -> (..., D)."""
        if self.norm == "rms_norm":
            return RMSNorm(self.width)
        return LayerNorm(self.width, self.layer_norm_eps, self.bias)

    def build_attention(self, layer: int, implementation: str) -> SelfAttention:
        """Return the attention half of a layer, (B, T, D) -> (B, T, D)."""
        return SelfAttention(
            self.width,
            self.heads,
            self.bias,
            implementation,
            self.dropout if self.attention_dropout else 0.0,
            local=self.is_local(layer),
            untied=self.positions in ("tupe_a", "tupe_r"),
        )

    def build_feed_forward(self) -> FeedForward:
        """Return the feed-forward half of a layer, (..., D) -> (..., D)."""
        return FeedForward(self.width, self.inner_width, self.ffn, self.bias)

    def build_block(self, layer: int, attention: str) -> Block:
        """Return one layer, (B, T, D) -> (B, T, D)."""
        raise NotImplementedError


class ModularStack(Stack):
    """Backbone of every :class:`Modular` choice: tokens (B, T) -> states (B, T, D).

    Args:
        vocabulary: rows of the embedding, and which id is [CLS].
        sequence_length: longest row T in tokens; rows of the position table.
    """

    sinusoids: Tensor | None

    def __init__(
        self, choice: Modular, vocabulary: Vocabulary, sequence_length: int, causal: bool, attention: str
    ) -> None:
        width, heads = choice.width, choice.heads
        blocks = [choice.build_block(layer, attention) for layer in range(choice.layers)]
        super().__init__(
            blocks,
            nn.Embedding(vocabulary.size, width),
            sequence_length,
            causal,
            width // heads if choice.positions == "rope" else 0,
            position_bias=position_bias(choice.positions, width, heads, sequence_length, causal),
            cls=vocabulary.cls,
            window=(choice.local_window or 0) if any(map(choice.is_local, range(choice.layers))) else 0,
        )
        self.choice, self.dropout = choice, choice.dropout
        self.positions = nn.Embedding(sequence_length, width) if choice.positions == "learned" else None
        # Segment A and B as published; packed documents are all segment A.
        self.token_types = nn.Embedding(2, width) if choice.segments else None
        self.bigrams = nn.Embedding(choice.bigram_rows, width) if choice.bigram_rows else None
        if choice.value_embeddings:
            for mixing in self._attentions():
                mixing.values = nn.Embedding(vocabulary.size, width)
        self.notebook = choice.notes.build(vocabulary, sequence_length, width)
        self.embedding_norm = choice.build_norm() if choice.embedding_norm else nn.Identity()
        self.final = choice.build_norm() if choice.final_norm else nn.Identity()
        # Not in checkpoints, as the rotary tables.
        table = sinusoids(sequence_length, width) if choice.positions == "sinusoidal" else None
        self.register_buffer("sinusoids", table, persistent=False)
        # Last, when all modules exist: weights are drawn in their order, which thereby is part of what a seed means.
        self.apply(choice.initialise)
        if choice.residual_init != "normal":
            std = 0.02 / (2 * choice.layers) ** 0.5 if choice.residual_init == "scaled" else 0.0
            for layer in range(choice.layers):
                for product in self.residual_products(layer):
                    nn.init.normal_(product.weight, std=std)

    def embed(self, tokens_BT: Tensor, batch: Batch) -> Tensor:
        """Return tokens (B, T) -> (B, T, D): token, position in its piece and segment A, normalised if asked for."""
        x_BTD = self.embedding(tokens_BT)
        if self.sinusoids is not None:
            # Vaswani et al. 2017, section 3.4: without the factor the table, of size 1, would drown the tokens.
            x_BTD = x_BTD * x_BTD.shape[-1] ** 0.5 + self.sinusoids[batch.positions_BT]
        if self.positions is not None:
            x_BTD = x_BTD + self.positions(batch.positions_BT)
        if self.token_types is not None:
            # Segment A as one broadcast row (D,): a look-up of B * T zeros would give the same numbers.
            x_BTD = x_BTD + self.token_types.weight[0]
        if self.bigrams is not None:
            x_BTD = x_BTD + self.bigrams(self._pairs(tokens_BT, batch.positions_BT))
        if self.notebook is not None and self.takes_notes():
            x_BTD = self.notebook.read(x_BTD, tokens_BT, batch)
        return drop(self.embedding_norm(x_BTD), self.dropout, self.training)

    def _pairs(self, tokens_BT: Tensor, positions_BT: Tensor) -> Tensor:
        """Return row of the table for each token and the one before it in its piece, (B, T) int64.

        Multiplicative hashing (Knuth, The Art of Computer Programming 3, section 6.4): pairs that share a row differ
        in what else the model knows of them, and frequent pairs outweigh rare ones.
        """
        assert self.bigrams is not None
        words = self.embedding.num_embeddings
        # A piece begins with a pair of its own: what another document ends with must not be seen.
        before_BT = tokens_BT.roll(1, dims=1).masked_fill(positions_BT == 0, words)
        hashed_BT = (before_BT.long() * words + tokens_BT) * 2654435761 >> 15
        return hashed_BT % self.bigrams.num_embeddings
