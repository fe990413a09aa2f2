"""Base of the objectives with two networks: a small one fills in masked tokens, the main one judges what it reads.

Rows go through the generator with [MASK] in some places; a token is drawn from its prediction at each of them; the main
network reads the filled rows. No gradient passes through the draw, so each network learns from its own loss alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.choices.architectures.architecture import Architecture, Backbone
from workbench.choices.architectures.flops import step_flops
from workbench.choices.architectures.heads import HEADS
from workbench.choices.architectures.modular import Modular
from workbench.choices.choice import Problem, knob
from workbench.choices.data.tokens import Batch, Vocabulary
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.objectives.corruption import (
    CPU,
    TREAT,
    Corrupting,
    Corruption,
    labelled_places,
    labels_per_row,
    random_bits_at,
)
from workbench.choices.objectives.draws import FILL, draw_tokens, uniforms
from workbench.choices.objectives.heldout import SEED
from workbench.choices.objectives.objective import Builder, Labelled, Loss, Objective, TrainingModel
from workbench.choices.objectives.preview import Preview, Shown, shown
from workbench.choices.objectives.token_prediction import TokenPrediction
from workbench.choices.progress import Progress
from workbench.choices.schedules.schedule import Scheduled, at, scheduled_knob

# Shape legend: B rows, T positions, D width of the main network, G of the generator, N selected slots, M = B * T,
# V vocabulary rows.

UNCHANGED = 0.15
"""Share of the selected places at which the generator reads the token itself (Clark et al. 2020, the authors' code)."""


class TwoNetworks(Objective):
    """Base of the objectives whose main network judges what a smaller one has filled in."""

    one_network: ClassVar[bool] = False
    judges: ClassVar[str]
    """Goes after "The main network "."""
    mask_rate: Scheduled = scheduled_knob(0.15, "share of positions that the generator fills in", gt=0, lt=1)
    generator_width: float = knob(
        0.25, "width and heads of the generator, as a share of the main network's", gt=0, le=1, unit="\u00d7 width"
    )
    generator_layers: int | None = knob(
        None, "layers of the generator; empty means as many as the main network has", ge=1, le=256
    )
    embeddings: Literal["shared", "separate", "gradient_disentangled"] = knob(
        "shared",
        "token table: one for both networks, one each, or the generator's plus a difference that the main one learns",
    )
    main_weight: Scheduled = scheduled_knob(50.0, "weight of the main network's loss beside the generator's", gt=0)

    @property
    def added_parts(self) -> tuple[str, ...]:
        """See :attr:`Objective.added_parts`: a network with blocks (B, T, G) -> (B, T, G) of its own."""
        return ("a generator",)

    def generator(self, architecture: Architecture) -> Architecture:
        """Return the generator's architecture: blocks (B, T, G) -> (B, T, G), else made as the main network's."""
        changes: dict[str, Any] = {"layers": self.generator_layers or architecture.layers}
        if self.generator_width < 1:
            heads = max(1, round(self.generator_width * architecture.heads))
            # In steps of 8 per head, which every way to tell positions can use, and never above the main network's.
            head_width = max(1, round(self.generator_width * architecture.width / heads / 8)) * 8
            changes |= {"heads": heads, "width": min(heads * head_width, architecture.width)}
            if architecture.ffn_width is not None:
                changes["ffn_width"] = max(8, round(self.generator_width * architecture.ffn_width / 8) * 8)
        if getattr(architecture, "pretrained", False):
            changes["pretrained"] = False
        return architecture.model_copy(update=changes)

    def choices_per_token(self) -> int:
        """Return how many scores the main network gives each of the B * T tokens."""
        raise NotImplementedError

    def flops(
        self, architecture: Architecture, vocabulary_size: int, plans: Sequence[LayerPlan], tokens: int, labelled: int,
        span: float, length: int,
    ) -> float:  # fmt: skip
        """Return the useful FLOPs of one step: the main network's on all T tokens, and the generator's."""
        small = self.generator(architecture)
        every = [LayerPlan.full(small.layers)] * len(plans)
        # A shared table (V, D) is as wide as the main network, also where the generator ends in it.
        shared = architecture.width if self.embeddings != "separate" else small.width
        wider = 6.0 * labelled * vocabulary_size * (shared - small.width)
        filling = step_flops(small, vocabulary_size, every, tokens, labelled, span, length) + wider
        scores = self.choices_per_token()
        judging = (
            step_flops(architecture, scores, plans, tokens, tokens, span, length) + 6.0 * tokens * architecture.width**2
        )
        # Candidates of every token need the generator's scores, forward only.
        return filling + judging + (2.0 * tokens * vocabulary_size * shared if scores > 1 else 0.0)

    def labelled_fraction(self, progress: Progress) -> float:
        """Return ``mask_rate`` at ``progress``: the share of a row's tokens that the generator predicts."""
        return at(self.mask_rate, progress)

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse a generator larger than the main network (B, T, D), and what two networks cannot be combined with."""
        yield from super().problems(recipe)
        architecture = recipe.architecture
        if (self.generator_layers or 0) > architecture.layers:
            yield Problem(
                "objective.generator_layers",
                f"a generator of {self.generator_layers} layers is deeper than the main network, which has "
                f"architecture.layers {architecture.layers}; use at most that, or leave it empty",
            )
        small = self.generator(architecture)
        if not list(Architecture.problems(architecture, recipe)):
            for problem in Architecture.problems(small, recipe):
                yield Problem("objective.generator_width", f"the generator, {small.width} wide: {problem.message}")
        if self.embeddings != "separate" and not isinstance(architecture, Modular):
            yield Problem(
                "objective.embeddings",
                f"'{self.embeddings}' puts the table of one network into another, and architecture "
                f"'{architecture.kind}' brings its own; use 'separate', or architecture 'pre_ln' or 'post_ln'",
            )
        if recipe.depth.architecture_at(architecture, 0) != architecture:
            yield Problem(
                "depth.kind",
                f"'{recipe.depth.kind}' changes the width of the main network, and the generator of objective "
                f"'{self.kind}' takes its own from it; use another depth method",  # type: ignore[attr-defined]
            )

    def previews(self, tokens: Sequence[int], vocabulary: Vocabulary, seed: int = 0) -> list[Preview]:
        """See :meth:`Objective.previews`: the generator's row (T,); its guesses depend on its weights."""
        (row,) = super().previews(tokens, vocabulary, seed)
        return [row._replace(words=f"The generator fills in what is hidden. The main network {self.judges}.")]

    def shown_rows(self, batch: Batch, vocabulary: Vocabulary, progress: Progress, seed: int) -> list[list[Shown]]:
        """Return rows (B, T) as the generator reads them; what it fills in for the main network needs its weights."""
        seen = selected(Corruption(vocabulary, CPU), batch, at(self.mask_rate, progress), seed)
        return shown(batch, seen.tokens_BT, labelled_places(seen), vocabulary.mask)


def selected(corrupt: Corruption, batch: Batch, rate: float, seed: int) -> Labelled:
    """Return rows (B, T) as the generator reads them: [MASK] at 85% of B * round(rate * T) slots, else the token."""
    seen = corrupt(batch, rate, seed, always_mask=True)
    assert seen.index_N is not None
    # Rows have equally many slots.
    column_BK = seen.index_N.view(len(batch.samples_B), -1) % batch.tokens_BT.shape[1]
    bits_N = random_bits_at(seed, TREAT, batch.samples_B, column_BK).flatten()
    # 63 bits modulo 100 prefer some residues by less than 1e-16.
    kept_N = bits_N % 100 < round(100 * UNCHANGED)
    shown_M = seen.tokens_BT.flatten()
    shown_N = torch.where(kept_N, seen.labels_N, shown_M[seen.index_N])
    return seen._replace(tokens_BT=shown_M.scatter(0, seen.index_N, shown_N).view_as(seen.tokens_BT))


class Disentangled(nn.Embedding):
    """The main network's table: stop_gradient(E) + F with the generator's E and a difference F, (V, D), zero at first.

    Gradients of the generator reach E alone, those of the main network F alone.

    Args:
        table: of both, E; its parameter keeps its name, ``weight``.
    """

    def __init__(self, table: nn.Embedding) -> None:
        super().__init__(table.num_embeddings, table.embedding_dim, device="meta")
        self.weight = table.weight
        self.difference = nn.Parameter(torch.zeros_like(table.weight))

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """Return rows of E + F, (B, T) -> (B, T, D)."""
        return F.embedding(tokens_BT, self.weight.detach()) + F.embedding(tokens_BT, self.difference)

    def whole(self) -> Tensor:
        """Return E + F, (V, D), which an export holds as the table of the main network."""
        return (self.weight + self.difference).detach()


class Borrowed(nn.Module):
    """The generator's view of the other network's table, projected to its own width: (B, T) -> (B, T, G).

    Args:
        table: stays the other network's: not registered, not saved here.
        width: G.
    """

    def __init__(self, table: nn.Embedding, width: int) -> None:
        super().__init__()
        self._table, self.num_embeddings = (table,), table.num_embeddings
        own = table.weight.shape[1]
        self.project = None if width == own else nn.Linear(own, width, bias=False)
        if self.project is not None:
            # Rows keep their size.
            nn.init.normal_(self.project.weight, std=own**-0.5)

    @property
    def weight(self) -> Tensor:
        """The table, (V, D)."""
        return self._table[0].weight

    def forward(self, tokens_BT: Tensor) -> Tensor:
        """Return projected rows of the table, (B, T) -> (B, T, G), in float32 as those of any table."""
        rows_BTD = F.embedding(tokens_BT, self.weight).float()
        return rows_BTD if self.project is None else self.project(rows_BTD).float()  # type: ignore[no-any-return]


class Filled(NamedTuple):
    """Rows as the generator has filled them in.

    Attributes:
        tokens_BT: true tokens but at the selected places, where drawn ones stand.
        nats: summed over the selected tokens that count, 0-d, with gradient.
        hits: of them predicted right, 0-d.
        states_MG: of the generator at all positions, detached; empty where nobody asks for them.
        seed: of the draws.
    """

    tokens_BT: Tensor
    nats: Tensor
    hits: Tensor
    states_MG: Tensor
    seed: int


class TwoNetworksModel(Corrupting, TrainingModel):
    """Main network and generator over one vocabulary; subclasses judge the filled rows.

    Attributes:
        generator: predicts masked tokens; held-out scores and every other question about tokens are its.
    """

    choice: TwoNetworks
    predicts = "generator"
    # The generator is no part of what a plan speaks of, and trains at all times.
    planned = ("backbone.blocks.", "generator.")
    reads_all: ClassVar[bool] = False
    """True where :attr:`Filled.states_MG` is wanted."""
    never_V: Tensor

    def __init__(self, choice: TwoNetworks, builder: Builder) -> None:
        super().__init__()
        self.choice, self.vocabulary, self.seed = choice, builder.vocabulary, builder.seed
        # The main network first: its weights are drawn first, as those of a model that has no generator.
        self.backbone = builder.backbone()
        small = choice.generator(builder.architecture)
        self.generator = TokenPrediction(choice, builder, small)
        if choice.embeddings != "separate":
            table = self.backbone.embedding
            if choice.embeddings == "gradient_disentangled":
                self.backbone.embedding = Disentangled(table)
            self.generator.backbone.embedding = Borrowed(table, small.width)  # type: ignore[assignment]
            self.generator.head = HEADS[small.head](table, small.tied, small.width)
        never_V = torch.arange(self.vocabulary.size) >= self.vocabulary.used
        never_V[list(self.vocabulary.special)] = True
        self.register_buffer("never_V", never_V, persistent=False)
        self._plan = LayerPlan.full(len(self.generator.backbone.blocks))
        self._fill_region: Callable[..., tuple[Tensor, Tensor, Tensor]] = self._fill

    def stacks(self) -> dict[str, Backbone]:
        """Return both stacks of blocks, (B, T, D) -> (B, T, D); depth methods act on ``main``."""
        return {"main": self.backbone, "generator": self.generator.backbone}

    def counts(self, batch: Batch, progress: Progress) -> dict[str, int]:
        """Return the selected tokens of rows (B, T) for the generator, all but padding for the main network."""
        tokens_BT = batch.tokens_BT
        ordinary_B = torch.isin(tokens_BT, tokens_BT.new_tensor(self.vocabulary.special), invert=True).sum(1)
        slots = labels_per_row(tokens_BT.shape[1], at(self.choice.mask_rate, progress))
        real = int((tokens_BT != self.vocabulary.pad).sum())
        return {"generator_loss": int(ordinary_B.clamp(max=slots).sum()), "main_loss": real}

    def weights(self, progress: Progress) -> dict[str, float]:
        """Return the weight of the main network's mean over rows (B, T); the generator's is 1."""
        return {"main_loss": at(self.choice.main_weight, progress)}

    def compile(self, **options: Any) -> None:
        """Compile the blocks of both networks, and what each of them ends with as one region."""
        self.backbone.compile_blocks(**options)
        self.generator.backbone.compile_blocks(**options)
        self._fill_region = torch.compile(self._fill, **options)

    def forward(self, batch: Batch, plan: LayerPlan, progress: Progress) -> Loss:
        """Return the nats of rows (B, T): ``generator_loss`` at selected places, ``main_loss`` at all real ones."""
        # Read from the choice every time: a knob turned during the run replaces the choice.
        seen = selected(self._corrupt(batch), batch, at(self.choice.mask_rate, progress), self.seed)
        filled = self.filled(batch, seen, self.seed)
        judged, ratios = self.judge(self.backbone(filled.tokens_BT, batch, plan), batch, seen, filled)
        parts = {"generator_loss": filled.nats, "main_loss": judged}
        return Loss(parts, {"accuracy": filled.hits.detach()}, ratios)

    def judge(
        self, x_BTD: Tensor, batch: Batch, seen: Labelled, filled: Filled
    ) -> tuple[Tensor, dict[str, tuple[Tensor, Tensor]]]:
        """Return the main network's nats summed over real tokens, 0-d, and shares to plot, as sums over counts.

        Args:
            x_BTD: its states on the filled rows.
            batch: the rows.
            seen: what the generator has read of them.
            filled: what the main network has read.
        """
        raise NotImplementedError

    def filled(self, batch: Batch, seen: Labelled, seed: int) -> Filled:
        """Run the generator on rows (B, T) and draw a token at every slot of ``seen``."""
        assert seen.index_N is not None
        uniform_BT = uniforms(seed, FILL, batch.samples_B, batch.tokens_BT.shape[1])
        uniform_N1 = uniform_BT.flatten()[seen.index_N][:, None]
        if self.reads_all:
            states_MG = self.generator.states(seen._replace(index_N=None), batch, self._plan)
            x_NG = states_MG[seen.index_N]
        else:
            x_NG = self.generator.states(seen, batch, self._plan)
            states_MG = x_NG[:0]
        nats, hits, drawn_N = self._fill_region(x_NG, seen.labels_N, seen.weight_N, uniform_N1)
        # Spare slots of a short row stand on special tokens, which stay what they are.
        drawn_N = torch.where(seen.weight_N > 0, drawn_N, seen.labels_N)
        tokens_M = batch.tokens_BT.flatten().scatter(0, seen.index_N, drawn_N)
        return Filled(tokens_M.view_as(batch.tokens_BT), nats, hits, states_MG.detach(), seed)

    def _fill(
        self, x_NG: Tensor, labels_N: Tensor, weight_N: Tensor, uniform_N1: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return nats, right predictions (0-d) and drawn tokens (N,) of the generator's states."""
        logits_NV = self.generator.head(x_NG).float()
        nats, hits = self.generator.scored(logits_NV, labels_N, weight_N)
        with torch.no_grad():
            drawn_N = draw_tokens(self.fillable(logits_NV), uniform_N1)[:, 0]
        return nats, hits, drawn_N

    def fillable(self, logits_NV: Tensor) -> Tensor:
        """Return logits (N, V) that leave out special tokens and padding of the table, which would show at once."""
        return logits_NV.masked_fill(self.never_V, -torch.inf)

    @torch.no_grad()
    def heldout(self, batch: Batch, seen: Labelled, plan: LayerPlan) -> Tensor:
        """Return the generator's nats of each scored token of rows (B, T), (N,), float32."""
        return self.generator.heldout(batch, seen, self._plan)

    @torch.no_grad()
    def token_logits(self, batch: Batch, seen: Labelled, plan: LayerPlan, *, causal: bool | None = None) -> Tensor:
        """Return the generator's logits (N, V); see :meth:`TrainingModel.token_logits`."""
        return self.generator.token_logits(batch, seen, self._plan, causal=causal)

    @torch.no_grad()
    def shares(self, batch: Batch, seen: Labelled, plan: LayerPlan) -> dict[str, tuple[Tensor, Tensor]]:
        """Return what the main network makes of held-out rows (B, T) whose [MASK] the generator fills in."""
        index_N = (seen.tokens_BT != batch.tokens_BT).flatten().nonzero()[:, 0]
        hidden = Labelled(seen.tokens_BT, index_N, batch.tokens_BT.flatten()[index_N], torch.ones_like(index_N).float())
        filled = self.filled(batch, hidden, SEED)
        return self.judge(self.backbone(filled.tokens_BT, batch, plan), batch, hidden, filled)[1]


def share(wanted: Tensor, of: Tensor) -> tuple[Tensor, Tensor]:
    """Return how many of the marked places (M,) are ``wanted`` too, and how many there are, 0-d, float32."""
    return (wanted & of).sum().float(), of.sum().float()
