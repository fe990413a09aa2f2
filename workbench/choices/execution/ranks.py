"""Processes that take the same steps together: each on its share of the rows, with gradients that are summed."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Concatenate, ParamSpec, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from workbench.base.errors import ProcessEnded, RunError

Value = TypeVar("Value")
Arguments = ParamSpec("Arguments")
JOIN = timedelta(minutes=10)
"""Processes that come later than this are not waited for."""
# A run that is paused may stand still for months, and the other processes wait for the first.
PATIENCE = timedelta(days=3650)


@dataclass(frozen=True)
class Ranks:
    """One of several processes, 0 of 1 by default; alone, every method gives back what it was given.

    ``torch.distributed`` must have been started with as many processes.

    Attributes:
        rank: of this process.
        size: processes.
    """

    rank: int = 0
    size: int = 1

    @classmethod
    def join(cls, rank: int, size: int) -> Ranks:
        """Return process ``rank`` of ``size`` once all have met at ``$MASTER_ADDR:$MASTER_PORT``, as torchrun says.

        Raises:
            RunError: some of them did not come.
        """
        try:
            store, *_ = next(dist.rendezvous("env://", rank, size, timeout=JOIN))
            store.set_timeout(JOIN)
            met = [f"met/{each}" for each in range(size)]
            store.set(met[rank], "")
            store.wait(met)
            dist.init_process_group("gloo", store=store, rank=rank, world_size=size, timeout=PATIENCE)
        except RuntimeError as error:
            raise RunError(
                f"process {rank} of {size} did not meet the others: {str(error).splitlines()[0]}; start all of them, "
                "as `torchrun --nproc-per-node` does"
            ) from error
        return cls(rank, size)

    def __str__(self) -> str:
        return f"{self.size} processes together" if self.size > 1 else ""

    def agree(self, value: Value, source: int = 0) -> Value:
        """Return the value of rank ``source``: clocks and requests differ between processes."""
        if self.size == 1:
            return value
        held = [value]
        with together():
            dist.broadcast_object_list(held, src=source)
        return held[0]

    def meet(self) -> None:
        """Wait until every process has come here."""
        if self.size > 1:
            with together():
                dist.barrier()

    def share(self, tensors: Mapping[str, Tensor], source: int = 0) -> dict[str, Tensor]:
        """Return the tensors of rank ``source`` by name, of any shapes and dtypes, on the CPU; no others count."""
        if self.size == 1:
            return dict(tensors)
        kinds = self.agree({name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}, source)
        if self.rank != source:
            tensors = {name: torch.empty(shape, dtype=dtype) for name, (shape, dtype) in kinds.items()}
        for tensor in tensors.values():
            if tensor.numel():
                # As bytes: gloo does not know every dtype.
                with together():
                    dist.broadcast(tensor.detach().contiguous().flatten().view(torch.uint8), src=source)
        return dict(tensors)

    def counted(self, counts: Mapping[str, int]) -> dict[str, int]:
        """Return the sums over all processes, by name."""
        if self.size == 1 or not counts:
            return dict(counts)
        # On the CPU, where counts are known; gloo sums there.
        total = torch.tensor(list(counts.values()))
        with together():
            dist.all_reduce(total)
        return dict(zip(counts, total.tolist(), strict=True))

    def reduce(self, tensors: Sequence[Tensor]) -> None:
        """Replace float32 tensors of any shape by their sums over all processes; each names the same in one order."""
        if self.size > 1 and tensors:
            # At once: each call waits for the slowest process.
            flat = torch.cat([tensor.detach().reshape(-1) for tensor in tensors])
            with together():
                dist.all_reduce(flat)
            for tensor, total in zip(tensors, flat.split([tensor.numel() for tensor in tensors]), strict=True):
                tensor.detach().copy_(total.view(tensor.shape))

    def apart(self, value: float, device: torch.device) -> list[Tensor]:
        """Return a tensor (size,) whose sum over all processes, see :meth:`reduce`, has the value of each; alone none.

        It travels with what is summed anyway, since a call of its own would wait for the slowest once more.
        """
        if self.size == 1:
            return []
        values = torch.zeros(self.size, device=device)
        values[self.rank] = value
        return [values]

    def follow(self, training: Any) -> None:
        """Carry out on ``training`` what rank 0 does with its own, until it dismisses this process.

        Args:
            training: with methods that are :func:`carried_out_by_all`.

        Raises:
            ProcessEnded: rank 0 has ended without that.
        """
        told: Any
        while (told := self.agree(None)) is not None:
            name, args, kwargs = told
            getattr(training, name)(*args, **kwargs)

    def dismiss(self) -> None:
        """Let the processes that :meth:`follow` end; rank 0 calls it."""
        self.agree(None)


def carried_out_by_all(
    method: Callable[Concatenate[Any, Arguments], None],
) -> Callable[Concatenate[Any, Arguments], None]:
    """Have processes that :meth:`Ranks.follow` do the same: rank 0 calls a method, and all carry it out.

    Args:
        method: of an object whose ``engine.ranks`` says which process this is.
    """

    @functools.wraps(method)
    def carried_out(self: Any, *args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
        if self.engine.ranks.rank == 0:
            self.engine.ranks.agree((method.__name__, args, kwargs))
        method(self, *args, **kwargs)

    return carried_out


_began_to_wait = 0.0
_waited = 0.0


def waited_seconds() -> float:
    """Return how long this process has been in exchanges with others since it began; 0 where it is alone."""
    return _waited


def waiting_seconds() -> float:
    """Return how long this process has been waiting for others by now; 0 where it does not."""
    # Read by a thread that watches, so once.
    began = _began_to_wait
    return time.monotonic() - began if began else 0.0


@contextmanager
def together(passing: bool = False) -> Iterator[None]:
    """Do what needs all processes.

    Args:
        passing: it computes as well, and calls :func:`get_on` now and then; errors may be its own.

    Raises:
        ProcessEnded: another one is no longer there.
    """
    global _began_to_wait, _waited
    _began_to_wait = time.monotonic()
    try:
        yield
    except RuntimeError as error:
        # In a pass torch tells no more than this of where an error comes from.
        if passing and "gloo" not in str(error) and not isinstance(error, dist.DistError):
            raise
        raise ProcessEnded from error
    finally:
        # How long others were waited for inside a pass, nobody knows.
        _waited += 0.0 if passing else time.monotonic() - _began_to_wait
        _began_to_wait = 0.0


def get_on() -> None:
    """Inside :func:`together`: this process does not wait any more, or anew."""
    global _began_to_wait
    if _began_to_wait:
        _began_to_wait = time.monotonic()
