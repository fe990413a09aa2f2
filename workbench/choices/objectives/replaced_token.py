"""Replaced-token detection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from workbench.choices.data.tokens import Batch
from workbench.choices.objectives.objective import Builder, Labelled, TrainingModel
from workbench.choices.objectives.two_networks import Filled, TwoNetworks, TwoNetworksModel, share

# Shape legend: B rows, T positions, D width, M = B * T.


class ReplacedToken(TwoNetworks):
    """Find the tokens that a smaller generator has replaced (ELECTRA).

    L = mean of -log p(token) where the generator fills in + main_weight * mean over all tokens of the binary
    cross-entropy of "replaced". A drawn token that happens to be the true one counts as not replaced.

    Source: Clark et al. 2020 (arXiv 2003.10555), section 2; disentangled embeddings: He et al. 2021 (arXiv 2111.09543).
    """

    kind: Literal["replaced_token"] = "replaced_token"
    judges: ClassVar[str] = "reads its guesses and says of every token whether it is the true one"

    def choices_per_token(self) -> int:
        """1: "replaced" or not, for each of the B * T tokens."""
        return 1

    def build(self, builder: Builder) -> TrainingModel:
        """Return discriminator (B, T, D), its head, and a generator; the builder's seed decides masks and draws."""
        return ReplacedTokenModel(self, builder)


class DiscriminatorHead(nn.Module):
    """One logit of "replaced" per token, (..., D) -> (...): w GELU(x W + b) + c, as ELECTRA's.

    Args:
        width: D.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense, self.out = nn.Linear(width, width), nn.Linear(width, 1)
        for product in (self.dense, self.out):
            nn.init.normal_(product.weight, std=0.02)
            nn.init.zeros_(product.bias)

    def forward(self, x_D: Tensor) -> Tensor:
        """Return logits, (..., D) -> (...), in the precision that autocast sets."""
        return self.out(F.gelu(self.dense(x_D)))[..., 0]  # type: ignore[no-any-return]


class ReplacedTokenModel(TwoNetworksModel):
    """Discriminator and generator; arguments as for :class:`TwoNetworksModel`, rows (B, T)."""

    def __init__(self, choice: ReplacedToken, builder: Builder) -> None:
        super().__init__(choice, builder)
        self.discriminator_head = DiscriminatorHead(builder.architecture.width)
        self._nats_region: Callable[..., tuple[Tensor, Tensor]] = self._nats

    def compile(self, **options: Any) -> None:
        """As both networks, (B, T, D) each, and the discriminator's head with its loss as one region."""
        super().compile(**options)
        self._nats_region = torch.compile(self._nats, **options)

    def judge(
        self, x_BTD: Tensor, batch: Batch, seen: Labelled, filled: Filled
    ) -> tuple[Tensor, dict[str, tuple[Tensor, Tensor]]]:
        """Return the binary cross-entropy summed over real tokens, 0-d; see :meth:`TwoNetworksModel.judge`."""
        replaced_M = (filled.tokens_BT != batch.tokens_BT).flatten()
        real_M = (batch.tokens_BT != self.vocabulary.pad).flatten()
        nats, found_M = self._nats_region(x_BTD.flatten(0, 1), replaced_M, real_M)
        with torch.no_grad():
            ratios = {
                "precision": share(replaced_M, found_M & real_M),
                "recall": share(found_M, replaced_M),
                "main_accuracy": share(found_M == replaced_M, real_M),
                "always_real": share(~replaced_M, real_M),
            }
        return nats, ratios

    def _nats(self, x_MD: Tensor, replaced_M: Tensor, real_M: Tensor) -> tuple[Tensor, Tensor]:
        logits_M = self.discriminator_head(x_MD).float()
        nats_M = F.binary_cross_entropy_with_logits(logits_M, replaced_M.float(), reduction="none")
        return (nats_M * real_M).sum(), logits_M.detach() > 0
