"""Attention over packed rows: documents share a row and never see one another.

Every implementation has one signature and one result; they differ in speed only, by device, precision and length.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from workbench.base.errors import RecipeError, check_known
from workbench.ops.dropout import dropped

# Shape legend: B rows, H heads, T query positions, S key positions, E width of a head, P places of a row.

Attention = Callable[[Tensor, Tensor, Tensor, Tensor, float], Tensor]


class Sight(NamedTuple):
    """Visibility in rows (B, T) of which several columns stand for one place.

    Attributes:
        sees_BTT: bool, whether a column (second axis) may see another (last axis) of its document; one at least.
        place_BT: int64, the place 0 .. P - 1 that a column stands for: its position is told by that. The first P
            columns are the places in their order.
        places: P.
    """

    sees_BTT: Tensor
    place_BT: Tensor
    places: int

    def between(self, values_BHPP: Tensor) -> Tensor:
        """Return numbers of pairs of places, (B or 1, H, P, P), for pairs of columns, (B, H, T, T)."""
        rows, columns = self.place_BT.shape
        place_BT1 = self.place_BT[:, :, None].expand(rows, columns, self.places)
        values_BHPP = values_BHPP.expand(rows, -1, -1, -1)
        heads = values_BHPP.shape[1]
        # (B, H, P, P) -> (B, H, T, P) -> (B, H, T, T)
        values_BHTP = values_BHPP.gather(2, place_BT1[:, None].expand(-1, heads, -1, -1))
        place_B1T = self.place_BT[:, None, None, :].expand(rows, heads, columns, columns)
        return values_BHTP.gather(3, place_B1T)


def document_bias(documents_BT: Tensor, causal: bool | Tensor | Sight, dtype: torch.dtype) -> Tensor:
    """Return what attention logits gain so that a position sees its own document only (and its past, if causal).

    Built once per batch and shared by all layers and heads. A position always sees itself, so no row of logits is
    entirely -inf.

    Args:
        documents_BT: (B, T) integer index of the document piece of each position.
        causal: attend to the past and oneself only; by row, bool (B,), where rows differ; or who sees whom.
        dtype: precision of the attention logits.

    Returns:
        bias_B1TT: shape (B, 1, T, T), 0 where position t (third axis) may see position s (last axis), -inf elsewhere.
    """
    # (B, 1, T, 1) == (B, 1, 1, T) -> (B, 1, T, T); the 1 broadcasts over heads.
    sees_B1TT = documents_BT[:, None, :, None] == documents_BT[:, None, None, :]
    if isinstance(causal, Sight):
        sees_B1TT &= causal.sees_BTT[:, None]
    elif causal is not False:
        length = documents_BT.shape[1]
        past_TT = torch.ones(length, length, dtype=torch.bool, device=documents_BT.device).tril_()
        sees_B1TT &= past_TT if causal is True else past_TT | ~causal[:, None, None, None]
    bias_B1TT = torch.zeros(sees_B1TT.shape, dtype=dtype, device=documents_BT.device)
    # -inf rather than a large number: exp gives exact zeros, so a packed document computes what it computes alone.
    return bias_B1TT.masked_fill_(~sees_B1TT, float("-inf"))


def plain(q_BHTE: Tensor, k_BHSE: Tensor, v_BHSE: Tensor, bias_BHTS: Tensor, dropout: float = 0.0) -> Tensor:
    """Return softmax(q k^T / sqrt(E) + bias) v, written out: two matrix products with the softmax between them in fp32.

    Args:
        q_BHTE, k_BHSE, v_BHSE: queries (B, H, T, E), keys and values (B, H, S, E).
        bias_BHTS: from :func:`document_bias`, (B, 1, T, S), or (B, H, T, S) where positions add to it per head.
        dropout: share of attention probabilities set to zero, the others scaled up.

    Returns:
        x_BHTE in the precision of ``q_BHTE``.
    """
    probabilities_BHTS = attention_probabilities(q_BHTE, k_BHSE, bias_BHTS).to(q_BHTE.dtype)
    # The caller passes 0 outside training, so no flag is needed here.
    if dropout:
        probabilities_BHTS = dropped(probabilities_BHTS, dropout)
    return probabilities_BHTS @ v_BHSE


def attention_probabilities(q_BHTE: Tensor, k_BHSE: Tensor, bias_BHTS: Tensor) -> Tensor:
    """Return softmax(q k^T / sqrt(E) + bias) in fp32, (B, H, T, S); every row sums to one."""
    # Scaling q rather than the logits touches S / E times fewer numbers.
    logits_BHTS = (q_BHTE * q_BHTE.shape[-1] ** -0.5) @ k_BHSE.transpose(-2, -1)
    return torch.softmax(logits_BHTS + bias_BHTS, dim=-1, dtype=torch.float32)


def sdpa(q_BHTE: Tensor, k_BHSE: Tensor, v_BHSE: Tensor, bias_BHTS: Tensor, dropout: float = 0.0) -> Tensor:
    """Return torch's scaled_dot_product_attention, additive mask;
    arguments and result (B, H, T, E) as for :func:`plain`.
    """
    # torch's CPU kernel knows no dropout, and what torch does instead draws every number by itself when compiled.
    if dropout and q_BHTE.device.type == "cpu":
        return plain(q_BHTE, k_BHSE, v_BHSE, bias_BHTS, dropout)
    return F.scaled_dot_product_attention(q_BHTE, k_BHSE, v_BHSE, attn_mask=bias_BHTS, dropout_p=dropout)


# Neither wins everywhere: on an AMX Xeon, blocks with sdpa took 1.57 times as long as with plain (pre_ln.md), while on
# a GPU sdpa has kernels that never write (B, H, T, S). Hence the probe of an engine.
ATTENTION: dict[str, Attention] = {"plain": plain, "sdpa": sdpa}
"""Implementations by the name that ``execution.attention`` uses."""


def attention_named(name: str) -> Attention:
    """Return the implementation called ``name``.

    Raises:
        RecipeError: there is none.
    """
    check_known("execution.attention", name, ATTENTION, RecipeError, "'auto' measures and picks one of them")
    return ATTENTION[name]
