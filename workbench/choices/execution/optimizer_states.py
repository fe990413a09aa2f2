"""Keep an optimizer's moments between two steps: in 8 bits, or in the host's memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor

# Shape legend: S spans of a tensor, E numbers of a span.

SPAN = 256
"""Numbers that share a scale: 4 bytes on 256, so a code costs 1.016 bytes."""
FEWEST = 4096
"""Tensors of fewer numbers stay as they are: biases and norms are a thousandth of the memory."""
TOGETHER = 1 << 22
"""Numbers whose moments are float32 at a time: 16 MiB per moment, or one tensor where it is larger."""
_PIECE = 1 << 18
"""Numbers worked on at a time on a CPU, as in ``optimizers/tensorwise.py``: what is in the cache stays there."""
_GOLDEN = 0.6180339887498949


def encode(x: Tensor, offset: float, signed: bool) -> tuple[Tensor, Tensor]:
    """Return numbers as 8-bit codes, and the largest magnitude of every span of 256.

    A code is the square root of a number's share of the largest (signed), or the fourth root (never negative): the
    smallest share that is told from zero is 6e-5 or 2e-10, so that a small second moment does not become none.

    Args:
        x: float32, any shape, contiguous.
        offset: in [0, 1), added before rounding down. One that runs evenly through [0, 1) from step to step makes a
            mean that moves by less than a code move after all; with 0.5 it would stand still.
        signed: whether numbers may be negative.

    Returns:
        Codes of x's shape, int8 or uint8, and scales (S,), float32.
    """
    codes = torch.empty(x.shape, dtype=torch.int8 if signed else torch.uint8, device=x.device)
    scales = torch.empty(-(-x.numel() // SPAN), dtype=torch.float32, device=x.device)
    for x_SE, codes_SE, scales_S in _spans(x, codes, scales):
        scales_S.copy_(x_SE.abs().amax(1))
        share_SE = x_SE / scales_S.clamp(min=torch.finfo(torch.float32).tiny)[:, None]
        if signed:
            size_SE = share_SE.abs().sqrt_().mul_(127).add_(offset).floor_().clamp_(max=127)
            codes_SE.copy_(size_SE.copysign_(share_SE))
        else:
            root_SE = share_SE.sqrt_().sqrt_().mul_(255)
            # Never to nothing: the step divides by it.
            least_SE = root_SE.sign()
            codes_SE.copy_(root_SE.add_(offset).floor_().clamp_(max=255).maximum(least_SE))
    return codes, scales


def decode(codes: Tensor, scales: Tensor) -> Tensor:
    """Return the float32 numbers of :func:`encode`'s codes, any shape, and scales (S,);
    exact for zero and the largest.
    """
    x = torch.empty(codes.shape, dtype=torch.float32, device=codes.device)
    signed = codes.dtype == torch.int8
    for codes_SE, x_SE, scales_S in _spans(codes, x, scales):
        x_SE.copy_(codes_SE)
        if signed:
            x_SE.mul_(x_SE.abs()).mul_((scales_S / 127**2)[:, None])
        else:
            x_SE.div_(255).square_().square_().mul_(scales_S[:, None])
    return x


def _spans(first: Tensor, second: Tensor, scales: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    """Yield two tensors of one shape as (S, 256) each with their scales (S,), in pieces; the rest as one short span."""
    numbers, flat = first.numel(), (first.view(-1), second.view(-1))
    whole = numbers // SPAN * SPAN
    piece = _PIECE if first.device.type == "cpu" else max(whole, 1)
    for begin in range(0, whole, piece):
        end = min(begin + piece, whole)
        a, b = (each[begin:end].view(-1, SPAN) for each in flat)
        yield a, b, scales[begin // SPAN : end // SPAN]
    if whole < numbers:
        a, b = (each[whole:].view(1, -1) for each in flat)
        yield a, b, scales[-1:]


class Storage(Protocol):
    """Keep moments between two steps."""

    def keep(self, name: str, moment: Tensor, steps: int) -> dict[str, Tensor]:
        """Return the tensors stored for a float32 moment, any shape, by name; ``name`` is among them."""

    def give(self, name: str, state: dict[str, Any], device: torch.device) -> Tensor:
        """Return the float32 moment on ``device``; its entries leave ``state``."""


class EightBit:
    """Moments as codes of 8 bits with one scale for 256 numbers (:func:`encode`): 1.016 bytes a number, not 4."""

    def keep(self, name: str, moment: Tensor, steps: int) -> dict[str, Tensor]:
        """Return codes of the moment's shape, and ``<name>_scale``, (S,)."""
        codes, scales = encode(moment, steps * _GOLDEN % 1.0, signed=not name.endswith("_sq"))
        return {name: codes, f"{name}_scale": scales}

    def give(self, name: str, state: dict[str, Any], device: torch.device) -> Tensor:
        """See :class:`Storage`; of the codes' shape. A moment that was float32 until now is given as it is."""
        moment, scales = state.pop(name), state.pop(f"{name}_scale", None)
        return moment if scales is None else decode(moment, scales)


class OnHost:
    """Moments in the host's memory, page-locked where there is a GPU, brought to it for their own step alone."""

    def keep(self, name: str, moment: Tensor, steps: int) -> dict[str, Tensor]:
        """Return the moment, any shape, on the host."""
        there = torch.empty(moment.shape, dtype=moment.dtype, device="cpu", pin_memory=moment.is_cuda)
        return {name: there.copy_(moment)}

    def give(self, name: str, state: dict[str, Any], device: torch.device) -> Tensor:
        """See :class:`Storage`; the copy runs beside the work, in the stream's order."""
        there: Tensor = state.pop(name).to(device, non_blocking=True)
        return there


STORAGES: dict[str, Callable[[], Storage]] = {"8bit": EightBit, "host": OnHost}
"""By the value of ``execution.optimizer_states``; float32 on the device needs none."""


class StoredMoments(torch.optim.Optimizer):
    """An optimizer whose moments are stored otherwise than it works with them.

    A step goes through the parameters in groups of :data:`TOGETHER` numbers: their moments are made float32, the inner
    optimizer steps these alone, and they are stored again. So the inner optimizer must treat every tensor by itself.
    Parameter groups are the inner optimizer's own. State is stored: checkpoints hold it as it is, and a resumed run
    repeats bit for bit.

    Args:
        inner: made, and without state yet.
        moments: names of those entries of a state that are stored, float32 of the parameter's shape; such as end in
            ``_sq`` are never negative.
        storage: how.
    """

    def __init__(self, inner: torch.optim.Optimizer, moments: tuple[str, ...], storage: Storage) -> None:
        self.inner, self.moments, self.storage = inner, moments, storage
        super().__init__(inner.param_groups, inner.defaults)

    def __getattr__(self, name: str) -> Any:
        # The path of a fused step, its compilation: what an optimizer may have beside torch's interface.
        if name == "inner":
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def on_host(self) -> tuple[str, ...]:
        """Entries of a state, any shapes, that a resumed run leaves where it has read them: off the device."""
        return self.moments if isinstance(self.storage, OnHost) else ()

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:  # type: ignore[override]
        """Take one step; returns what ``closure`` (which recomputes the loss) returns, or None."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        graded = [(p, p.grad) for group in self.param_groups for p in group["params"] if p.grad is not None]
        for parameter, _ in graded:
            parameter.grad = None
        try:
            for chunk in _chunks(graded):
                for parameter, gradient in chunk:
                    parameter.grad = gradient
                    if parameter in self.state:
                        self.inner.state[parameter] = self._given(self.state.pop(parameter), parameter.device)
                self.inner.step()
                for parameter, _ in chunk:
                    self.state[parameter] = self._kept(self.inner.state.pop(parameter))
                    parameter.grad = None
        finally:
            for parameter, gradient in graded:
                parameter.grad = gradient
        return loss

    def _kept(self, state: dict[str, Any]) -> dict[str, Any]:
        steps = state["stored"] = state.get("stored", 0) + 1
        for name in self.moments:
            if name in state and state[name].numel() >= FEWEST:
                state |= self.storage.keep(name, state.pop(name), steps)
        return state

    def _given(self, state: dict[str, Any], device: torch.device) -> dict[str, Any]:
        for name in self.moments:
            if name in state:
                state[name] = self.storage.give(name, state, device)
        return state


def whole_moments(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return a checkpoint's optimizer tensors, of any shapes, with codes read as float32:
    for an engine that stores others.
    """
    scaled = [name.removesuffix("_scale") for name in tensors if name.endswith("_scale")]
    coded = {name: decode(tensors[name], tensors[f"{name}_scale"]) for name in scaled}
    left = {name: tensor for name, tensor in tensors.items() if name.removesuffix("_scale") not in coded}
    return left | coded


def stored_bytes(states: str, numbers: int) -> int:
    """Return bytes on the device of one moment of so many numbers, under a value of ``execution.optimizer_states``."""
    if states == "fp32" or numbers < FEWEST:
        return 4 * numbers
    return 0 if states == "host" else numbers + 4 * -(-numbers // SPAN)


def _chunks(graded: list[tuple[Tensor, Tensor]]) -> Iterator[list[tuple[Tensor, Tensor]]]:
    chunk: list[tuple[Tensor, Tensor]] = []
    numbers = 0
    for pair in graded:
        if chunk and numbers + pair[0].numel() > TOGETHER:
            yield chunk
            chunk, numbers = [], 0
        chunk.append(pair)
        numbers += pair[0].numel()
    if chunk:
        yield chunk
