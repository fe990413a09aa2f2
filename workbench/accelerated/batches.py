"""Batches of a user's loader: counted, cut into micro-batches, and found again after a resume."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from workbench.base.errors import DataError
from workbench.training.batches import StepBatch, StepShape

IGNORED = -100
"""Label of a position without one, as torch's cross-entropy and transformers have it."""
_EPOCHS = 1 << 31
"""Seeds of epochs stand above those of steps, which are fewer."""


@dataclass(frozen=True)
class OwnBatch:
    """One micro-batch.

    Attributes:
        content: what the loader gave: tensors of any shape (rows, ...), in mappings, lists and tuples.
        rows: of it.
        tokens: real ones (:func:`tokens_of`).
        count: what its mean loss is a mean over: labels, or rows where labels are not tokens'.
    """

    content: Any
    rows: int
    tokens: int
    count: int

    @classmethod
    def of(cls, content: Any) -> OwnBatch:
        """Counted, on the CPU if possible: reading a count from a GPU waits for it."""
        rows = rows_of(content)
        labels = content.get("labels") if isinstance(content, Mapping) else None
        count = rows
        if (tokens := predicted_tokens(content)) is not None:
            count = len(tokens)
        elif isinstance(labels, Tensor) and labels.ndim > 1 and not labels.is_floating_point():
            count = int(torch.count_nonzero(labels != IGNORED))
        return cls(content, rows, tokens_of(content) or rows, max(1, count))

    def to(self, device: torch.device) -> OwnBatch:
        """Return the same on ``device``."""
        moved = mapped(self.content, lambda tensor: tensor.to(device, non_blocking=True))
        return OwnBatch(moved, self.rows, self.tokens, self.count)

    def parts(self, rows: int) -> list[OwnBatch]:
        """Return micro-batches of at most so many rows."""
        if rows >= self.rows:
            return [self]
        cuts = (slice(first, first + rows) for first in range(0, self.rows, rows))
        return [OwnBatch.of(mapped(self.content, self._cutting(cut))) for cut in cuts]

    def _cutting(self, cut: slice) -> Callable[[Tensor], Tensor]:
        # What has another first axis than the rows is shared by all parts.
        return lambda tensor: tensor[cut] if tensor.ndim and len(tensor) == self.rows else tensor


def mapped(content: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """Return ``content`` with every tensor in its mappings, lists and tuples changed."""
    if isinstance(content, Tensor):
        return change(content)
    if isinstance(content, Mapping):
        return {key: mapped(value, change) for key, value in content.items()}
    if isinstance(content, tuple) and hasattr(content, "_fields"):
        return type(content)(*(mapped(value, change) for value in content))
    if isinstance(content, list | tuple):
        return type(content)(mapped(value, change) for value in content)
    return content


def rows_of(content: Any) -> int:
    """Return length of the first axis of the first tensor that has one; 1 where none has."""
    sizes: list[int] = []

    def look(tensor: Tensor) -> Tensor:
        sizes.extend(tensor.shape[:1])
        return tensor

    mapped(content, look)
    return sizes[0] if sizes else 1


def tensors_of(content: Any) -> dict[str, Tensor]:
    """Return the tensors of a batch, by the names or places at which they stand."""
    if isinstance(content, Tensor):
        return {"": content}
    named = content.items() if isinstance(content, Mapping) else ()
    placed = enumerate(content) if isinstance(content, list | tuple) else named
    return {
        f"{key}.{inner}".rstrip("."): tensor for key, value in placed for inner, tensor in tensors_of(value).items()
    }


def many_rows(content: Any) -> bool:
    """Return True if all tensors of a batch have a first axis of rows, of equal lengths."""
    tensors = tensors_of(content)
    ids = tensors.get("input_ids")
    return len({tensor.shape[:1] for tensor in tensors.values()}) < 2 and not (ids is not None and ids.ndim < 2)


def described(content: Any) -> str:
    """Return a batch in words: its type, and of each tensor the shape, and the range where it holds whole numbers.

    Example:
        >>> described({"labels": torch.tensor([[3, 9]])})
        'a dict of labels (1, 2) of 3 to 9'
    """
    found = []
    for name, tensor in tensors_of(content).items():
        whole = tensor.numel() and not tensor.is_floating_point() and not tensor.is_complex()
        span = f" of {int(tensor.min())} to {int(tensor.max())}" if whole and tensor.dtype != torch.bool else ""
        found.append(f"{name} {tuple(tensor.shape)}{span}".strip())
    return f"a {type(content).__name__}" + (f" of {', '.join(found)}" if found else "")


def tokens_of(content: Any) -> int | None:
    """Return tokens of ``input_ids`` (B, T) that ``attention_mask`` does not call padding; None without any."""
    ids = content.get("input_ids") if isinstance(content, Mapping) else None
    if not isinstance(ids, Tensor):
        return None
    mask = content.get("attention_mask")
    return int((mask != 0).sum()) if isinstance(mask, Tensor) and mask.shape == ids.shape else ids.numel()


def predicted_tokens(content: Any) -> Tensor | None:
    """Return labels of a batch, flat, where they are tokens of its ``input_ids`` (B, T); None where they are not.

    Labels that repeat the ids are a causal model's, which is not asked for the first token of a row.
    """
    labels, ids = (content.get(name) if isinstance(content, Mapping) else None for name in ("labels", "input_ids"))
    if not isinstance(labels, Tensor) or not isinstance(ids, Tensor) or labels.shape != ids.shape or ids.ndim != 2:
        return None
    kept = labels != IGNORED
    asked = labels[:, 1:] if torch.equal(labels[kept], ids[kept]) else labels
    return asked[asked != IGNORED].long().cpu()


def length_of(loader: Any) -> int | None:
    """Return batches of an epoch; None where the loader does not say."""
    try:
        return len(loader)
    # A DataLoader has a length in any case, and says so of a dataset that has none.
    except TypeError:
        return None


def check_loader(loader: Any, what: str) -> None:
    """Refuse what cannot be read more than once.

    Raises:
        DataError: it is not iterable, text, a mapping, or an iterator.
    """
    why = "" if isinstance(loader, Iterable) and not isinstance(loader, str | bytes) else "cannot be read"
    if isinstance(loader, Mapping | Iterator):
        why = "is one batch" if isinstance(loader, Mapping) else "can be read only once"
    if why:
        raise DataError(
            f"{what}: a {type(loader).__name__} {why}; give a DataLoader or a list of batches, which a run reads again "
            "in every epoch"
        )


def epoch_of(loader: Any, seed: int, epoch: int, read: int = 0) -> Iterator[Any]:
    """Yield one pass over a loader in an order that (seed, epoch) decides, as far as torch's generators decide it.

    Args:
        read: batches at its beginning that are passed over.

    Raises:
        DataError: it has fewer.
    """
    drawn = (seed << 32) + _EPOCHS + epoch
    for owner in (loader, getattr(loader, "sampler", None)):
        if isinstance(generator := getattr(owner, "generator", None), torch.Generator):
            generator.manual_seed(drawn)
        if callable(set_epoch := getattr(owner, "set_epoch", None)):
            set_epoch(epoch)
    # The step's own draws must not depend on whether an epoch begins with it, or is taken up again.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(drawn)
        batches = iter(loader)
        # Here as well: samplers draw the order of an epoch with its first batch.
        first = list(itertools.islice(batches, 1))
        for number in range(len(first), read):
            if next(batches, loader) is loader:
                raise DataError(
                    f"the loader ends after {number} batches, and the run has read {read} of epoch {epoch + 1}; give "
                    "the loader that the run began with"
                )
    return batches if read else itertools.chain(first, batches)


def first_of(loader: Any, what: str) -> Any:
    """Return the first batch of a loader.

    Args:
        what: the argument that it was, for the message.

    Raises:
        DataError: it gives none.
    """
    # A sentinel, since a batch may be anything.
    first = next(epoch_of(loader, 0, 0), loader)
    if first is loader:
        raise DataError(
            f"{what}: this {type(loader).__name__} gives no batch; look at the size of its dataset, and at batch_size "
            "where drop_last is on"
        )
    return first


class OwnSteps:
    """Hands out one batch of a loader per step, epoch after epoch.

    In the step that reads it, not ahead: what a dataset draws then depends on the step's seed alone. A loader with
    workers prepares ahead by itself.

    Args:
        loader: of the user.
        seed: of the recipe.
        position: what :meth:`state` was; batches of the epoch so far are read once more and passed over.
    """

    def __init__(self, loader: Iterable[Any], seed: int, position: Mapping[str, Any] | None = None) -> None:
        self._loader, self._seed = loader, seed
        self._epoch, self._read = (int((position or {}).get(key, 0)) for key in ("epoch", "read"))
        self._batches: Iterator[Any] | None = None

    def next(self, tokens: int, shape: StepShape) -> StepBatch:
        """Return the next batch, cut into micro-batches of ``shape.part_rows``; how many rows it has,
        the loader decides.

        Raises:
            DataError: the loader is empty, or shorter than it was when a checkpoint was made.
        """
        if self._batches is None:
            self._batches = epoch_of(self._loader, self._seed, self._epoch, self._read)
        content = next(self._batches, self)
        if content is self:
            if not self._read:
                raise DataError("the loader gives no batch")
            self._epoch, self._read, self._batches = self._epoch + 1, 0, None
            return self.next(tokens, shape)
        self._read += 1
        batch = OwnBatch.of(content)
        return StepBatch(batch.parts(shape.part_rows) if shape.part_rows < shape.rows else [batch], batch.tokens)

    def state(self) -> dict[str, Any]:
        """Return epoch, and batches read of it."""
        return {"epoch": self._epoch, "read": self._read}

    def close(self) -> None:
        """Let go of the loader's workers."""
        self._batches = None
