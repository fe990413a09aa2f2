"""Define the contract of an architecture: a stack of blocks between an embedding and a head, counted and buildable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from workbench.choices.architectures.heads import HEADS
from workbench.choices.choice import Choice, Problem, knob
from workbench.choices.data.tokens import Batch, TokenStore, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.knob import bounds_of
from workbench.ops.attention import Sight

# Shape legend: B rows, T positions, D width, N chosen positions of the whole batch.


class Backbone(nn.Module):
    """Embedding and blocks; objectives put their heads on top.

    Attributes:
        blocks: the layers, each a module that :class:`LayerPlan` can skip, scale or freeze.
        embedding: the token embedding, (vocabulary, D); heads may tie to its weight.
        recomputes: layers, counted from 0, of which the backward pass finds the input alone.
        taps: when a list, forward appends to it, per layer that ran, the RMS of its output (0-d tensors).
        reads_attention: whether :meth:`attention_entropy` can be asked at all.
    """

    reads_attention: ClassVar[bool] = True

    blocks: nn.ModuleList
    embedding: nn.Embedding
    recomputes: frozenset[int] = frozenset()
    taps: list[Tensor] | None = None

    def forward(
        self,
        tokens_BT: Tensor,
        batch: Batch,
        plan: LayerPlan,
        rows_N: Tensor | None = None,
        causal: bool | Tensor | Sight | None = None,
    ) -> Tensor:
        """Return hidden states after the final norm: (B, T, D), or (N, D) of the positions ``rows_N`` alone.

        Args:
            tokens_BT: int64 ids, shape (B, T), already corrupted by the objective.
            plan: which blocks run, with which residual scale, and which train.
            rows_N: int64 flat positions b * T + t whose states are wanted, the same as x_BTD.flatten(0, 1)[rows_N];
                the last block then computes its output product and feed-forward part for them only.
            causal: attend to the past only, this time; by row, bool (B,), where rows differ; None as it was built; or,
                of ``Modular`` alone, which columns each column sees, of all that ``tokens_BT`` and ``batch`` have.
                Anything else than it was built with only where :meth:`Architecture.switches_mask` says so.
        """
        raise NotImplementedError

    def study(self, text: TokenStore) -> None:
        """Look at the training text (N,) before the first step, for what the model keeps of it beside its weights."""

    def compile_blocks(self, **options: object) -> None:
        """Compile each block with torch.compile(**options); equal blocks share one graph."""
        raise NotImplementedError

    def residual_products(self, layer: int) -> list[nn.Linear]:
        """Return the products (D, .) through which a layer writes into the residual stream: zeroed,
        the layer is silent.
        """
        raise NotImplementedError

    def attention_entropy(self, tokens_BT: Tensor, batch: Batch) -> Sequence[Tensor | None]:
        """Return mean entropy in nats of each layer's attention, (B, H, T, T), on these (few) rows, 0-d,
        without gradient.

        None for a layer that does not say what it attends to.
        """
        raise NotImplementedError


def shared_names(source: nn.Module, target: nn.Module) -> list[str]:
    """Return names of tensors, of any shape, that both layers have in one shape: what a copy of a layer takes over."""
    theirs = source.state_dict()
    return [name for name, t in target.state_dict().items() if name in theirs and theirs[name].shape == t.shape]


def uncopied(source: nn.Module, target: nn.Module) -> list[str]:
    """Return names of the target's matrices, (D, D) and the like, that a copy of ``source`` would leave fresh.

    Vectors do not count: the first layer of ModernBERT has no norm before its attention, and a fresh norm does for it.
    """
    shared = set(shared_names(source, target))
    return [name for name, parameter in target.named_parameters() if parameter.ndim > 1 and name not in shared]


def copies(depth: Any, layers: int) -> list[tuple[int, int]]:
    """Return (source, layer) for every layer (B, T, D) -> (B, T, D) that a stage of a depth method makes
    of another one.
    """
    transitions = [depth.transition(layers, stage) for stage in range(1, len(depth.starts()))]
    return [
        (source, layer)
        for transition in transitions
        for layer, source in enumerate(transition.sources, transition.first)
        if source is not None and layer < layers
    ]


class Architecture(Choice):
    """Base of the model families. Knobs shared by all of them: depth, width and heads."""

    axis: ClassVar[str] = "architecture"
    provides: ClassVar[tuple[str, ...]] = ("build",)
    layers: int = knob(4, "blocks", ge=1, le=256)
    width: int = knob(256, "hidden width D", ge=8, le=32768, scale="log")
    heads: int = knob(4, "attention heads; must divide the width", ge=1, le=512)
    ffn_width: int | None = knob(None, "inner width of the feed-forward part; empty means 4 x width", ge=8)
    head: Literal["transform", "linear"] = knob(
        "linear", "layers before the output matrix: BERT's dense + GELU + norm, or none"
    )
    tied: bool = knob(True, "the output matrix is the token embedding; off gives the head its own (V, D) matrix")

    @property
    def inner_width(self) -> int:
        """Feed-forward width F in use; an ungated part goes (B, T, D) -> (B, T, F) -> (B, T, D)."""
        return self.ffn_width or 4 * self.width

    def head_widths(self) -> tuple[int, str, str]:
        """Return the divisor of a head's width E, the kinds that have none, and a way out beside other numbers."""
        return 1, "", ""

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse a number of heads H that does not work with the width: queries are (B, H, T, E) with E = D / H."""
        multiple, cannot, way_out = self.head_widths()
        if self.width % (self.heads * multiple) == 0:
            return
        what = f"{self.heads} heads do not divide width {self.width}"
        if self.width % self.heads == 0:
            heads = "1 head" if self.heads == 1 else f"{self.heads} heads"
            what = f"{heads} of width {self.width // self.heads} {cannot}"
        # Up to 64: nobody is helped by every divisor of 4096.
        legal = [h for h in range(1, min(self.width, 64) + 1) if self.width % (h * multiple) == 0]
        if not legal and self.width % self.heads:
            what += f", and heads of an odd width {cannot}"
        remedy = f"use one of {legal}" if legal else self._other_widths(multiple)
        # It helps heads of another width, not a number of them that divides nothing.
        yield Problem("architecture.heads", f"{what}; {remedy}{way_out if self.width % self.heads == 0 else ''}")

    def _other_widths(self, multiple: int) -> str:
        """Return the way out where no number of heads H works with the width D."""
        step, bounds = self.heads * multiple, bounds_of(type(self).model_fields["width"])
        below = self.width // step * step
        near = [str(width) for width in (below, below + step) if bounds["minimum"] <= width <= bounds["maximum"]]
        return f"no number of heads works with it: change the width, for example to {' or '.join(near)}"

    def build(self, vocabulary: Vocabulary, sequence_length: int, *, causal: bool, attention: str) -> Backbone:
        """Return a freshly initialised backbone on the current default device, fp32.

        Args:
            vocabulary: its ``size`` is the number of embedding rows.
            sequence_length: longest row T it must accept, in tokens (``data.longest``).
            causal: attend to the past only.
            attention: name of the attention implementation (see ``ops.attention``).
        """
        raise NotImplementedError

    def build_head(self, backbone: Backbone) -> nn.Module:
        """Return a freshly initialised head over ``backbone``'s vocabulary: states (N, D) -> logits (N, V)."""
        return HEADS[self.head](backbone.embedding, self.tied)

    def head_parameters(self, vocabulary_size: int) -> int:
        """Return numbers in the head's matrices, (D, V) and (D, D) if it transforms first:
        its share of the FLOP formula.
        """
        transform = self.width**2 if self.head == "transform" else 0
        return transform + self.width * vocabulary_size

    def needs_logits(self) -> str:
        """Return why attention must add a bias (B, H, T, T) or drop probabilities; empty where it need not."""
        return "this architecture brings its own attention"

    def keeps_notes(self) -> bool:
        """Return whether training changes more than weights: notes that are read into the input (B, T, D)."""
        return False

    def switches_mask(self) -> bool:
        """Return whether a model built for both sides can see the past alone in some rows (B, T), or in some steps."""
        return False

    def silent_is_identity(self) -> bool:
        """Return True if a block of zero residual products (D, .) passes (B, T, D) on unchanged, as pre-norm."""
        return False

    def widens(self) -> bool:
        """Return True if a model of k times the width D and the heads H can be made to compute the same function."""
        return False

    def ffn_widens(self) -> bool:
        """Return True if a model of a longer inner width F can be made to compute the same function."""
        return False

    def block_parameters(self) -> int:
        """Return numbers in one block's matrices, (D, D) and the like, without norms and biases:
        N of the FLOP formula.
        """
        raise NotImplementedError

    def least_parameters(self, tokens: int) -> int:
        """Return numbers that a model with a vocabulary of so many tokens has at least: without norms,
        biases and heads.
        """
        return self.layers * self.block_parameters() + tokens * self.width

    @property
    def frozen_parameters(self) -> int:
        """Numbers in parameters that never train: without gradients and optimizer states."""
        return 0

    def mixing_parameters(self) -> int:
        """Return those of them that all B * T tokens need before positions are mixed: queries, keys and values,
        (D, 3D).
        """
        return 3 * self.width**2

    def layer_span(self, layer: int, span: float) -> float:
        """Return positions that a position of this layer sees, in tokens, where documents are ``span`` tokens long."""
        return span

    def shared_flops(self, length: int) -> float:
        """Forward FLOPs of one micro-batch for what its layers share, with rows of T = ``length`` tokens."""
        return 0.0

    def save_pretrained(
        self, backbone: Backbone, head: nn.Module, folder: Path, vocabulary: Vocabulary, layers: int
    ) -> bool:
        """Write the model as a folder that transformers loads, if transformers knows this architecture.

        Args:
            folder: must not exist yet.
            layers: how many of the backbone's layers exist (a model that grows may not have all of them yet).

        Returns:
            False, and nothing written, when it does not.
        """
        return False

    def initialise(self, module: nn.Module) -> None:
        """BERT's initialisation, whatever the shape: normal(0, 0.02) for matrices, zeros for biases, ones for norms."""
        # Norm modules are made with ones and zeros already and draw nothing.
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
