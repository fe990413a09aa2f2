"""A traced micro-batch, noted part by part for any number of rows: what is divisible by the rows grows with them."""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn

from workbench.choices.objectives.objective import TrainingModel
from workbench.forecasting.meta_tensors import MetaTensor, MetaTensorMode
from workbench.forecasting.operations import PRODUCTS, Operation, Part, Trace, described, tensors_in

Line = tuple[int, int]
"""A number of bytes, or of anything, as (fixed, per row)."""


@dataclass
class _LinearPart:
    """A :class:`Part` for any number of rows: operations as (fixed fields, lines of the others)."""

    forward: list[tuple[tuple[Any, ...], tuple[Line, ...]]] = field(default_factory=list)
    backward: list[tuple[tuple[Any, ...], tuple[Line, ...]]] = field(default_factory=list)
    kept: Line = (0, 0)
    kept_products: Line = (0, 0)

    def at(self, rows: int) -> Part:
        forward, backward = (
            [Operation(*fixed, *[a + rows * b for a, b in lines]) for fixed, lines in operations]
            for operations in (self.forward, self.backward)
        )
        return Part(forward, backward, _value(self.kept, rows), _value(self.kept_products, rows))


@dataclass(frozen=True)
class LinearTrace:
    """A :class:`Trace` for any number of rows."""

    shared: _LinearPart
    layers: tuple[_LinearPart, ...]
    last: _LinearPart
    head: _LinearPart
    labels: Line
    head_peaks: tuple[Line, ...]

    def at(self, rows: int, sorts: tuple[int, ...]) -> Trace:
        """At B rows; ``sorts`` as in :class:`Trace`."""
        return Trace(
            self.shared.at(rows), tuple(layer.at(rows) for layer in self.layers), sorts, self.last.at(rows),
            self.head.at(rows), _value(self.labels, rows), max(_value(peak, rows) for peak in self.head_peaks),
        )  # fmt: skip


def _value(line: Line, rows: int) -> int:
    return line[0] + rows * line[1]


def _total(lines: Iterable[Line]) -> Line:
    fixed = per_row = 0
    for a, b in lines:
        fixed, per_row = fixed + a, per_row + b
    return fixed, per_row


class TraceRecorder(MetaTensorMode):
    """Notes operations and kept tensors by the part of the model they belong to.

    Args:
        rows: B, the prime.
    """

    def __init__(self, model: TrainingModel, rows: int, runs: Sequence[bool]) -> None:
        super().__init__()
        self._rows, self._runs = rows, runs
        self._blocks = list(model.stacks()["main"].blocks)
        self._weights = {p.untyped_storage()._cdata for p in model.parameters()}
        self._here: Any = "shared"
        self._backward = self._begun = False
        # Storages are identified by a number of our own: an address is used again once its storage is gone.
        self._numbers = weakref.WeakKeyDictionary[Any, int]()
        self._sizes: list[Line] = []
        self._alive: Line = (0, 0)
        self._peaks: set[Line] = {(0, 0)}
        self._parts: dict[Any, _LinearPart] = {}
        self._products: set[int] = set()
        self._kept: dict[int, Any] = {}

    @contextlib.contextmanager
    def placed(self) -> Iterator[None]:
        """Inside, the model's blocks say when they are entered and left."""
        handles = [
            handle
            for index, block in enumerate(self._blocks)
            if self._runs[index]
            for handle in (
                block.register_forward_pre_hook(functools.partial(self._enter, index), with_kwargs=True),
                block.register_forward_hook(functools.partial(self._leave, index)),
            )
        ]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def begin(self) -> None:
        """The batch is there: from now on operations are the model's."""
        self._begun = True

    def saw(self, name: str, read: list[Tensor], written: list[Tensor]) -> None:
        """Note an operation; see :class:`MetaTensorMode`."""
        numbers = {self._number(tensor) for tensor in (*read, *written)}
        if not self._begun:
            return
        part = self._part(self._here)
        (part.backward if self._backward else part.forward).append(self._operation(name, read, written))
        if name.startswith(PRODUCTS):
            self._products |= numbers

    def keep(self, tensor: Tensor) -> Tensor:
        """Called by autograd for every tensor that the backward pass will read."""
        meta = tensor.meta if isinstance(tensor, MetaTensor) else tensor
        if meta.untyped_storage()._cdata not in self._weights:
            self._kept.setdefault(self._number(meta), self._here)
        return tensor

    def turn(self) -> None:
        """The forward pass is over."""
        self._backward = True

    def finish(self, labels: int) -> LinearTrace:
        """Return everything by part."""
        for number, here in self._kept.items():
            part = self._part(here)
            part.kept = _total((part.kept, self._sizes[number]))
            if number in self._products:
                part.kept_products = _total((part.kept_products, self._sizes[number]))
        last = len(self._runs) - 1
        inner = tuple(self._part(layer) for layer in range(last) if self._runs[layer])
        shared, end, head = map(self._part, ("shared", last, "head"))
        return LinearTrace(shared, inner, end, head, self._line(labels), tuple(self._peaks))

    def _part(self, here: Any) -> _LinearPart:
        return self._parts.setdefault(here, _LinearPart())

    def _number(self, tensor: Tensor) -> int:
        storage = tensor.untyped_storage()
        number = self._numbers.get(storage)
        if number is None:
            size = self._line(storage.nbytes())
            number = self._numbers[storage] = len(self._sizes)
            self._sizes.append(size)
            # The weights are counted by whoever knows the whole model.
            if storage._cdata not in self._weights:
                self._alive = _total((self._alive, size))
                if self._here == "head":
                    self._peaks.add(self._alive)
                weakref.finalize(storage, self._free, size)
        return number

    def _free(self, size: Line) -> None:
        self._alive = self._alive[0] - size[0], self._alive[1] - size[1]

    def _line(self, size: int) -> Line:
        return (0, size // self._rows) if size % self._rows == 0 else (size, 0)

    def _operation(
        self, name: str, read: list[Tensor], written: list[Tensor]
    ) -> tuple[tuple[Any, ...], tuple[Line, ...]]:
        moved = _total(self._line(t.numel() * t.element_size()) for t in (*read, *written))
        key, kind, dims = described(name, read, written)
        return (name, key, kind), (*map(self._line, dims), moved)

    def _enter(self, index: int, _: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._here = index
        given = next(tensors_in([*args, *kwargs.values()]), None)
        if index == self._runs.index(True) and given is not None and given.requires_grad:
            given.register_hook(self._going("shared"))

    def _leave(self, index: int, _: nn.Module, __: Any, out: Any) -> None:
        self._here = "head" if index == len(self._blocks) - 1 else index
        given = next(tensors_in([out]), None)
        if given is not None and given.requires_grad:
            # The gradient of a layer's output is whole exactly when its own backward pass begins.
            given.register_hook(self._going(index))

    def _going(self, where: Any) -> Callable[[Tensor], None]:
        def go(_: Tensor) -> None:
            self._here = where

        return go
