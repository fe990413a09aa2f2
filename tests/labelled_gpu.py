"""A GPU in name only: tensors of the CPU that are labelled ``cuda``, so that code for GPUs runs where there is none.

Numbers are the CPU's. What a real GPU refuses is refused: an operation on tensors of both devices; and what would make
the host wait for it is an error: reading a number, copying between the devices otherwise than ``non_blocking`` out of
pinned memory or into it, and shapes that depend on numbers. Autocast, compiled code and kernels are not covered.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import torch
import torch.utils.checkpoint
from torch import Tensor
from torch.autograd.graph import _engine_run_backward
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

CUDA = torch.device("cuda", 0)
READS = {
    Tensor.item, Tensor.tolist, Tensor.numpy, Tensor.__bool__, Tensor.__float__, Tensor.__int__, Tensor.__index__,
    Tensor.nonzero, torch.nonzero, torch.masked_select, Tensor.unique, torch.unique, torch.equal, torch.allclose,
    # These tell the host whether they succeeded.
    torch.linalg.eigh, torch.linalg.svd, torch.linalg.cholesky, torch.linalg.inv, torch.linalg.solve,
}  # fmt: skip
_SET_DATA = Tensor.data.__set__
_DEVICE, _IS_CUDA, _PINNED = Tensor.device.__get__, Tensor.is_cuda.__get__, Tensor.is_pinned


class Waited(AssertionError):
    """The host would have waited for the GPU."""


class MixedDevices(AssertionError):
    """An operation on tensors of both devices."""


class Event:
    """Stands in for ``torch.cuda.Event``: the CPU has always got there."""

    def __init__(self, **options: Any) -> None:
        self.recorded = self.waited = False

    def record(self) -> None:
        self.recorded = True

    def synchronize(self) -> None:
        assert self.recorded
        self.waited = True

    def elapsed_time(self, other: Event) -> float:
        assert self.recorded
        assert other.recorded
        return 0.5


class LabelledGpu(TorchFunctionMode):
    """While entered, tensors that are sent to ``cuda`` or made there say that they are there."""

    def __init__(self) -> None:
        super().__init__()
        # By address of the Python object, with the object, so that the address is not used again.
        self._there: dict[int, Tensor] = {}
        self._pinned: dict[int, Tensor] = {}
        self.free = True
        self.peaks_forgotten = 0

    def forget_peak(self, device: Any = None) -> None:
        self.peaks_forgotten += 1

    def on_gpu(self, tensor: Any) -> bool:
        return id(tensor) in self._there

    def label(self, found: Any) -> Any:
        for tensor in tree_leaves(found):
            if isinstance(tensor, Tensor):
                self._there[id(tensor)] = tensor
        return found

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func in (_DEVICE, _IS_CUDA, _PINNED):
            return self._asked(func, args[0])
        if func is Tensor.backward:
            # Entered again: what the backward pass computes a second time is Python, too.
            loss, one = args[0], torch.ones_like(args[0])
            with self:
                return _engine_run_backward((loss,), (one,), False, False, (), True, accumulate_grad=True)
        if func is torch._has_compatible_shallow_copy_type:
            return True
        if kwargs.pop("pin_memory", False):
            return self.pin(func(*args, **kwargs))
        if func in (Tensor.to, Tensor.cpu, Tensor.cuda):
            return self._moved(func, args, kwargs)
        named, given = kwargs.pop("device", None), [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        there = [self.on_gpu(x) for x in given]
        if func in READS and any(there) and not self.free:
            raise Waited(func.__name__)
        if func is Tensor.copy_:
            if len(set(there)) == 2:
                self._check_copy(args[0], args[1], args[2] if len(args) > 2 else kwargs.get("non_blocking", False))
        elif func == _SET_DATA:
            func(*args)
            return self.label(args[0]) if there[1] else self._there.pop(id(args[0]), None)
        elif any(there) and any(not one and x.ndim > 0 for one, x in zip(there, given, strict=True)):
            raise MixedDevices(f"{getattr(func, '__name__', func)}: {there}")
        if func is Tensor.__getitem__ and any(x.dtype in (torch.bool, torch.uint8) for x in given[1:]) and any(there):
            raise Waited("indexing by booleans")
        made_there = named is not None and torch.device(named).type == "cuda"
        if made_there and func in (torch.tensor, torch.as_tensor) and not self.free:
            raise Waited(f"{func.__name__} on the GPU")
        found = func(*args, **kwargs)
        # What works in place leaves its tensor where it is.
        elsewhere = made_there or (named is None and any(there) and not any(found is x for x in given))
        return self.label(found) if elsewhere else found

    def _asked(self, func: Any, tensor: Tensor) -> Any:
        if func is _PINNED:
            return id(tensor) in self._pinned
        there = self.on_gpu(tensor)
        return there if func is _IS_CUDA else CUDA if there else torch.device("cpu")

    def pin(self, tensor: Tensor) -> Tensor:
        self._pinned[id(tensor)] = tensor
        return tensor

    def _moved(self, func: Any, args: Any, kwargs: Any) -> Tensor:
        source, rest = args[0], (*args[1:], *kwargs.values())
        wanted = [x for x in rest if isinstance(x, torch.device | str)]
        wanted += [torch.device("cpu")] * (func is Tensor.cpu) + [CUDA] * (func is Tensor.cuda)
        like = [self.on_gpu(x) for x in rest if isinstance(x, Tensor)]
        there = torch.device(wanted[0]).type == "cuda" if wanted else (like or [self.on_gpu(source)])[0]
        dtype = next((x for x in rest if isinstance(x, torch.dtype)), source.dtype)
        found: Tensor = source.to(dtype)
        if there != self.on_gpu(source):
            self._check_copy(source, source, kwargs.get("non_blocking", False) or any(x is True for x in rest))
            found = found.clone() if found is source else found
        return self.label(found) if there else found

    def _check_copy(self, to: Tensor, source: Tensor, non_blocking: bool) -> None:
        host = source if not self.on_gpu(source) else to
        if not self.free and not (non_blocking and (id(host) in self._pinned or host.ndim == 0)):
            raise Waited("a copy between host and GPU that waits")


@contextmanager
def labelled_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[LabelledGpu]:
    """Inside, there is such a GPU, and waiting for it is free while ``free`` is true, as it is at first."""
    if torch.version.cuda and not torch.cuda.is_available():
        pytest.skip("torch is built for GPUs here, and asks for a driver that is not there")
    mode = LabelledGpu()
    # Not left to the mode, which other threads are not in: batches are pinned where they are prepared.
    monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: mode.pin(tensor.clone()))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device=None: None)
    monkeypatch.setattr(torch.cuda, "manual_seed_all", lambda seed: None)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 1 << 30)
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", mode.forget_peak)
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device=None: torch.get_rng_state())
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda state, device=None: torch.set_rng_state(state))
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device=None: "labelled")
    # Checkpoints compare devices where hooks of autograd see no labels.
    checks = torch.utils.checkpoint._allowed_determinism_checks_to_fns
    monkeypatch.setitem(checks, "default", lambda tensor: (tensor.shape, tensor.dtype))
    with mode:
        yield mode
