"""The operations of a step: calls of kernels, each with the sizes that decide its cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor

PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "_scaled_dot_product")
"""Beginnings of the names of operations that are matrix products."""
PRODUCT_KINDS = ("product", "attention")


class Operation(NamedTuple):
    """One call of a kernel.

    Attributes:
        name: in aten.
        key: what decides its cost besides sizes: name, types, and how what it reads lies in memory.
        kind: ``product``, ``attention`` (a batched or fused product) or ``other``.
        many, m, k, n: products (m, k) x (k, n), and how many; 0 for others.
        bytes: read and written.
    """

    name: str
    key: str
    kind: str
    many: int
    m: int
    k: int
    n: int
    bytes: int

    @property
    def flops(self) -> float:
        """FLOPs of a product, 0 else."""
        return 2.0 * self.many * self.m * self.k * self.n

    @property
    def sizes(self) -> tuple[float, ...]:
        """Sizes whose sum, each times a rate, is its time: one call, then FLOPs and numbers of a product, or bytes."""
        if self.kind not in PRODUCT_KINDS:
            return 1.0, float(self.bytes)
        many, m, k, n = self[3:7]
        return 1.0, self.flops, float(many * m * k), float(many * k * n), float(many * m * n)


@dataclass
class Part:
    """The work of one part of the model in one micro-batch.

    Attributes:
        kept: bytes that the forward pass keeps for the backward one.
        kept_products: of those, inputs and outputs of matrix products: what compiled code keeps.
    """

    forward: list[Operation] = field(default_factory=list)
    backward: list[Operation] = field(default_factory=list)
    kept: int = 0
    kept_products: int = 0


@dataclass(frozen=True)
class Trace:
    """A micro-batch: what precedes the layers, a layer of each sort, the last layer, what follows.

    Attributes:
        shared: corruption, embedding, biases of attention.
        layers: one of each sort that stands before the last.
        sorts: index into ``layers`` for every layer of the architecture but the last.
        last: the last layer; it may compute labelled positions only.
        head: final norm, head and loss.
        labels: N, labelled positions.
        head_peak: bytes alive at most while the head ran, forward or backward, parameters left out.
    """

    shared: Part
    layers: tuple[Part, ...]
    sorts: tuple[int, ...]
    last: Part
    head: Part
    labels: int
    head_peak: int

    @property
    def kept_below_head(self) -> int:
        """Bytes kept by all that was traced but the head."""
        return self.shared.kept + sum(layer.kept for layer in self.layers) + self.last.kept


def described(name: str, read: list[Tensor], written: list[Tensor]) -> tuple[str, str, tuple[int, int, int, int]]:
    """Return key, kind and (many, m, k, n) of an :class:`Operation`, from its tensors, real or without memory."""
    bits = 8 * written[0].element_size()
    if not name.startswith(PRODUCTS):
        lies = "" if all(t.is_contiguous() for t in read) else " strided"
        return f"{name} {8 * read[0].element_size() if read else 0}>{bits}{lies}", "other", (0, 0, 0, 0)
    if name.startswith("_scaled_dot_product"):
        queries, keys = [t for t in read if t.ndim == 4][:2]
        # Two products forward; five backward: one repeated, four gradients.
        backward = "backward" in name
        head, rows, columns = queries.shape[-1], queries.shape[-2], keys.shape[-2]
        many = (5 if backward else 2) * (queries.numel() // (head * rows))
        return f"sdpa{' backward' if backward else ''} {bits}", "attention", (many, rows, head, columns)
    a, b = read[-2:]
    order = "".join("n" if t.is_contiguous() else "t" for t in (a, b))
    many = a.shape[0] if a.ndim == 3 else 1
    dims = (many, a.shape[-2], a.shape[-1], b.shape[-1])
    return f"{'bmm' if a.ndim == 3 else 'mm'} {bits} {order}", "attention" if a.ndim == 3 else "product", dims


def tensors_in(values: Iterable[Any]) -> Iterator[Tensor]:
    """Yield tensors of any shape among arguments or results, those in tuples and lists too."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (tuple, list)):
            yield from tensors_in(value)
