"""Multiple choice among the candidates of a meta controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.choices.choice import knob
from workbench.choices.data.tokens import Batch
from workbench.choices.objectives.draws import CANDIDATES, draw_tokens, uniforms
from workbench.choices.objectives.objective import Builder, Labelled, TrainingModel
from workbench.choices.objectives.two_networks import Filled, TwoNetworks, TwoNetworksModel, share

# Shape legend: B rows, T positions, D width, G width of the controller, M = B * T, K choices of a position.


class MetaController(TwoNetworks):
    """Choose the right token among candidates of a smaller controller, or keep what stands there (MC-BERT).

    L = mean of -log p(token) where the controller fills in + main_weight * mean over all tokens of -log p(choice).
    Choice 0 keeps the token; it is right wherever nothing was replaced. Elsewhere the true token is choice 1.

    Source: Xu et al. 2020 (arXiv 2006.05744), section 3, and the authors' code.
    """

    kind: Literal["meta_controller"] = "meta_controller"
    judges: ClassVar[str] = "reads its guesses and keeps each token, or chooses another among candidates"
    generator_width: float = knob(
        1 / 3, "width and heads of the controller, as a share of the main network's", gt=0, le=1, unit="\u00d7 width"
    )
    choices: int = knob(10, "choices at every token: to keep it, and candidates of the controller", ge=2, le=64)

    def choices_per_token(self) -> int:
        """Return K, for each of the B * T tokens."""
        return self.choices

    def build(self, builder: Builder) -> TrainingModel:
        """Return main network (B, T, D), its head, and a controller; the builder's seed decides masks and draws."""
        return MetaControllerModel(self, builder)


class ChoiceHead(nn.Module):
    """Scores of K choices per position, (M, D) -> (M, K): LayerNorm(GELU(x W + b)) times the choices' embeddings.

    Args:
        width: D.
        tokens: V; each has a bias.
    """

    def __init__(self, width: int, tokens: int) -> None:
        super().__init__()
        self.dense, self.norm = nn.Linear(width, width), nn.LayerNorm(width, eps=1e-12)
        nn.init.normal_(self.dense.weight, std=0.02)
        nn.init.zeros_(self.dense.bias)
        self.keep = nn.Parameter(self.dense.weight.new_empty(width).normal_(std=0.02))
        self.bias = nn.Parameter(self.dense.weight.new_zeros(tokens))

    def forward(self, x_MD: Tensor, candidates_MJ: Tensor, embedded_MJD: Tensor) -> Tensor:
        """Return scores (M, K) of "keep" and of J = K - 1 candidates, in the precision that autocast sets."""
        found_MD = self.norm(F.gelu(self.dense(x_MD)))
        # (M, 1, D) x (M, D, J) -> (M, J)
        scores_MJ = torch.matmul(found_MD[:, None], embedded_MJD.transpose(1, 2))[:, 0] + self.bias[candidates_MJ]
        return torch.cat([(found_MD @ self.keep)[:, None], scores_MJ], 1)


class MetaControllerModel(TwoNetworksModel):
    """Main network and controller; arguments as for :class:`TwoNetworksModel`, rows (B, T)."""

    choice: MetaController
    reads_all = True

    def __init__(self, choice: MetaController, builder: Builder) -> None:
        super().__init__(choice, builder)
        self.choice_head = ChoiceHead(builder.architecture.width, builder.vocabulary.size)
        self._nats_region: Callable[..., tuple[Tensor, Tensor]] = self._nats
        self._drawn_region: Callable[..., Tensor] = self._drawn

    def compile(self, **options: Any) -> None:
        """As both networks, (B, T, D) each, and the choice with its loss as one region."""
        super().compile(**options)
        self._nats_region = torch.compile(self._nats, **options)
        self._drawn_region = torch.compile(self._drawn, **options)

    def judge(
        self, x_BTD: Tensor, batch: Batch, seen: Labelled, filled: Filled
    ) -> tuple[Tensor, dict[str, tuple[Tensor, Tensor]]]:
        """Return the nats of the choices summed over real tokens, 0-d; see :meth:`TwoNetworksModel.judge`."""
        true_M, stands_M = batch.tokens_BT.flatten(), filled.tokens_BT.flatten()
        replaced_M, real_M = true_M != stands_M, true_M != self.vocabulary.pad
        candidates_MJ = self.candidates(batch, filled)
        nats, chosen_M = self._nats_region(x_BTD.flatten(0, 1), candidates_MJ, stands_M, replaced_M, real_M)
        with torch.no_grad():
            marked_M = (chosen_M > 0) & real_M
            ratios = {
                "precision": share(replaced_M, marked_M),
                "recall": share(marked_M, replaced_M),
                "corrected": share(chosen_M == 1, replaced_M),
                "main_accuracy": share(chosen_M == replaced_M.long(), real_M),
                "always_real": share(~replaced_M, real_M),
            }
        return nats, ratios

    @torch.no_grad()
    def candidates(self, batch: Batch, filled: Filled) -> Tensor:
        """Draw K - 1 tokens from the controller's prediction at every position, (M, K - 1).

        Where a token was replaced the first of them is the true one.
        """
        length, many = batch.tokens_BT.shape[1], self.choice.choices - 1
        draws = [uniforms(filled.seed, CANDIDATES + k, batch.samples_B, length).flatten() for k in range(many)]
        drawn_MJ = self._drawn_region(filled.states_MG, torch.stack(draws, 1))
        true_M, stands_M = batch.tokens_BT.flatten(), filled.tokens_BT.flatten()
        first_M = torch.where(true_M != stands_M, true_M, drawn_MJ[:, 0])
        return torch.cat([first_M[:, None], drawn_MJ[:, 1:]], 1)

    def _drawn(self, x_MG: Tensor, uniform_MJ: Tensor) -> Tensor:
        return draw_tokens(self.fillable(self.generator.head(x_MG).float()), uniform_MJ)

    def _nats(
        self, x_MD: Tensor, candidates_MJ: Tensor, stands_M: Tensor, replaced_M: Tensor, real_M: Tensor
    ) -> tuple[Tensor, Tensor]:
        scores_MK = self.choice_head(x_MD, candidates_MJ, self.backbone.embedding(candidates_MJ)).float()
        scores_MK = scores_MK.masked_fill(repeated(candidates_MJ, stands_M), -torch.inf)
        nats_M = F.cross_entropy(scores_MK, replaced_M.long(), reduction="none")
        return (nats_M * real_M).sum(), scores_MK.detach().argmax(-1)


def repeated(candidates_MJ: Tensor, stands_M: Tensor) -> Tensor:
    """Return which of the K choices say again what an earlier one says, (M, K): the token that stands there, or twice.

    Example:
        >>> repeated(torch.tensor([[7, 5, 7]]), torch.tensor([5])).tolist()
        [[False, False, True, True]]
    """
    told_MK = torch.cat([stands_M[:, None], candidates_MJ], 1)
    same_MKK = told_MK[:, :, None] == told_MK[:, None, :]
    # Entry (i, j) with j < i: an earlier choice is the same.
    return same_MKK.tril(-1).any(-1)
