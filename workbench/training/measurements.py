"""Measure inside a step: the split of its time, and per-layer statistics. Nothing here waits for a GPU."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil
import torch
from torch import Tensor

from workbench.choices.architectures.architecture import Backbone
from workbench.choices.data.tokens import Batch
from workbench.choices.depth.plan import LayerPlan
from workbench.choices.execution.parallel.parallel import Exchange
from workbench.ops.free_memory import own_sizes
from workbench.telemetry.quantities import ENTROPY_EVERY

# Shape legend: L layers of the model, T positions of a row.

PARTS = ("data", "forward", "backward", "optimizer")
"""Parts of a step's time, in the order in which they happen."""

Value = float | None


class HostCopy:
    """Named 0-d (or flat) tensors on their way to the host: one transfer, no wait until they are read.

    Args:
        tensors: by name; all on one device.
    """

    def __init__(self, tensors: Mapping[str, Tensor]) -> None:
        self._sizes = {name: tensor.numel() for name, tensor in tensors.items()}
        # One flat vector: each small copy would cost a transfer of its own. Nothing has no device to come from.
        flat = [tensor.detach().float().reshape(-1) for tensor in tensors.values() if tensor.numel()]
        self._flat = torch.cat(flat) if flat else torch.empty(0)
        self._event: torch.cuda.Event | None = None
        if self._flat.is_cuda:
            # Pinned, since a copy into ordinary memory waits for the device.
            pinned = torch.empty(self._flat.shape, dtype=self._flat.dtype, pin_memory=True)
            self._flat = pinned.copy_(self._flat, non_blocking=True)
            self._event = torch.cuda.Event()
            self._event.record()

    def read(self) -> dict[str, list[float]]:
        """Return the values by name, waiting for the device only if it is not there yet."""
        if self._event is not None:
            self._event.synchronize()
        values = iter(self._flat.tolist())
        return {name: [next(values) for _ in range(size)] for name, size in self._sizes.items()}


class StepTimes:
    """Time of a step by part: host clock on a CPU, events (read later) on a GPU.

    Attributes:
        processor_seconds: of this thread since the beginning, as of the last mark; it has the step to itself on a CPU.
    """

    def __init__(self, device: torch.device) -> None:
        self._cuda = device.type == "cuda"
        self._marks: list[tuple[str, Any]] = []
        self._began, self.processor_seconds = time.thread_time(), 0.0
        # Where the first part begins.
        self.mark("")

    def mark(self, part: str) -> None:
        """Count the time since the last mark as that of ``part``."""
        if self._cuda:
            event = torch.cuda.Event(enable_timing=True)
            event.record()
            self._marks.append((part, event))
        else:
            self._marks.append((part, time.perf_counter()))
            self.processor_seconds = time.thread_time() - self._began

    @property
    def processor_share(self) -> float | None:
        """Share of the step in which it had a processor: less than 1 where others wanted it; None on a GPU."""
        if self._cuda:
            return None
        passed = self._marks[-1][1] - self._marks[0][1]
        # Clocks of different kinds: a step of microseconds may seem to have had more than there was.
        return min(1.0, self.processor_seconds / passed) if passed > 0 else None

    def milliseconds(self) -> dict[str, float]:
        """Return ``{"data_ms", "forward_ms", "backward_ms", "optimizer_ms", "step_ms"}``;
        the device must have got there.
        """
        parts = dict.fromkeys(PARTS, 0.0)
        for (_, before), (part, now) in zip(self._marks, self._marks[1:], strict=False):
            parts[part] += before.elapsed_time(now) if self._cuda else (now - before) * 1e3
        return {**{f"{part}_ms": value for part, value in parts.items()}, "step_ms": sum(parts.values())}


class LayerMeter:
    """Per-layer statistics, on the steps that are recorded; on the others it only counts which layers ran.

    Args:
        optimizer: the state of its parameters may hold a ``trust_ratio`` (LAMB, LANS).
        warn: takes a sentence on what cannot be measured, every time it is tried; None says nothing.
        exchange: takes norms of tensors of which each process has a part; None for whole ones.
    """

    def __init__(
        self,
        backbone: Backbone,
        optimizer: torch.optim.Optimizer,
        warn: Callable[[str], None] | None = None,
        exchange: Exchange | None = None,
    ) -> None:
        self._backbone, self._exchange = backbone, exchange or Exchange()
        self._warn = warn or (lambda text: None)
        self._optimizer = optimizer
        self._records = self._layers = 0
        self._reset_counts()

    def saw(self, plan: LayerPlan) -> None:
        """Count a micro-batch."""
        self._micro_batches += 1
        self._layers = plan.layers
        for layer, runs in enumerate(plan.runs):
            self._ran[layer] = self._ran.get(layer, 0) + runs

    def before(self) -> None:
        """On a recorded step, before its last forward pass: have the backbone report its activations."""
        self._backbone.taps = []

    def gradients(self) -> None:
        """After the backward pass and before the optimizer's: keep gradient norms and the weights as they are."""
        # Of the layers that exist: a growing model has more blocks than layers. Integers, as quantized models hold,
        # have no norm, and do not move.
        blocks = self._backbone.blocks[: self._layers]
        self._blocks = [[weight for weight in block.parameters() if weight.is_floating_point()] for block in blocks]
        self._weights = [parameter for block in self._blocks for parameter in block]
        # Detached first: neither the copy nor the norms must enter a graph.
        detached = [weight.detach() for weight in self._weights]
        graded = [(weight, weight.grad) for weight in self._weights if weight.grad is not None]
        self._graded = [weight.grad is not None for weight in self._weights]
        self._gradient_norms = self._exchange.norms([each for each, _ in graded], [grad for _, grad in graded])
        # A copy, because optimizers write in place; only steps with a layers record pay for it.
        self._before = [weight.clone() for weight in detached]

    def after(self, plan: LayerPlan, batch: Batch) -> LayerReading:
        """After the optimizer's step: everything measured, still on the device.

        Args:
            batch: the last micro-batch; a row of it is read for the attention entropy now and then.
        """
        taps, self._backbone.taps = self._backbone.taps or [], None
        weight_norms = self._exchange.norms(self._weights, self._before)
        updates = torch._foreach_sub([weight.detach() for weight in self._weights], self._before)
        update_norms = self._exchange.norms(self._weights, updates)
        self._before = []
        tensors = {
            "gradient": _stack(self._gradient_norms),
            "weight": _stack(weight_norms),
            "update": _stack(update_norms),
            "taps": _stack([tap.detach() for tap in taps]),
        }
        trusted = self._trust_ratios()
        tensors["trust"] = _stack([ratio for ratio in trusted if ratio is not None])
        reads = self._backbone.reads_attention and self._records % ENTROPY_EVERY == 0
        entropy = self._entropy(batch, plan.layers) if reads else None
        tensors["entropy"] = _stack([one for one in entropy or () if one is not None])
        self._records += 1
        ran = [self._ran.get(layer, 0) / self._micro_batches for layer in range(plan.layers)]
        self._reset_counts()
        sizes = [len(block) for block in self._blocks]
        seen = None if entropy is None else [one is not None for one in entropy]
        return LayerReading(plan, HostCopy(tensors), sizes, self._graded, ran, seen, [r is not None for r in trusted])

    def _entropy(self, batch: Batch, layers: int) -> Sequence[Tensor | None]:
        """Return entropy of the attention of the layers that exist, nats, 0-d;
        None for all where it cannot be measured.
        """
        # One row: entropy needs probabilities (1, H, T, T), which training never keeps.
        row = Batch(*(tensor[:1] for tensor in batch[:4]))
        try:
            # Layers that do not exist yet stand above all others, so these read the same with and without them.
            return self._exchange.entropy(self._backbone, row.tokens_BT, row)[:layers]
        # It calls other people's models in ways of its own: whatever goes wrong there, training did not.
        except Exception as error:
            self._warn(f"no attention entropy of this model: {type(error).__name__}: {' '.join(str(error).split())}")
            return [None] * layers

    def _trust_ratios(self) -> list[Tensor | None]:
        """Return mean over each block's matrices, where the optimizer keeps such ratios."""
        means: list[Tensor | None] = []
        for block in self._blocks:
            states = (self._optimizer.state.get(weight, {}) for weight in block if weight.ndim >= 2)
            found = [state["trust_ratio"] for state in states if "trust_ratio" in state]
            means.append(torch.stack(found).mean() if found else None)
        return means

    def _reset_counts(self) -> None:
        self._micro_batches = 0
        self._ran: dict[int, int] = {}


class LayerReading:
    """One record of the ``layers`` stream in the making.

    Args:
        plan: of the step's last micro-batch.
        copy: norms by parameter (``gradient``, ``weight``, ``update``) and ``taps`` by layer that ran.
        sizes: parameters per layer. graded: per parameter, whether it had a gradient.
        ran: per layer, share of the micro-batches since the last record in which it ran.
        seen: per layer, whether ``copy`` has an ``entropy``; None when not measured.
        trusted: per layer, whether it has a ``trust`` ratio.
    """

    def __init__(
        self,
        plan: LayerPlan,
        copy: HostCopy,
        sizes: list[int],
        graded: list[bool],
        ran: list[float],
        seen: list[bool] | None,
        trusted: list[bool],
    ) -> None:
        self._plan, self._copy, self._sizes, self._graded = plan, copy, sizes, graded
        self._ran, self._seen, self._trusted = ran, seen, trusted

    def vectors(self) -> dict[str, list[Value]]:
        """Return the record: every vector has one entry per layer of the finished model, None where there is none."""
        plan, read = self._plan, self._copy.read()
        gradient = iter(read["gradient"])
        by_parameter = [next(gradient) if graded else None for graded in self._graded]
        weight, update = self._by_layer(read["weight"]), self._by_layer(read["update"])
        taps = iter(read["taps"])
        vectors: dict[str, list[Value]] = {
            "ran": list(self._ran),
            "keep": list(plan.keep),
            "scale": list(plan.scale),
            "grad_norm": self._by_layer(by_parameter),
            "update_ratio": [u / w if u is not None and w else None for u, w in zip(update, weight, strict=True)],
            "activation_rms": [next(taps, None) if runs else None for runs in plan.runs],
        }
        if self._seen is not None:
            entropy = iter(read["entropy"])
            vectors["attention_entropy"] = [next(entropy) if seen else None for seen in self._seen]
        if any(self._trusted):
            trust = iter(read["trust"])
            vectors["trust_ratio"] = [next(trust) if trusted else None for trusted in self._trusted]
        absent: list[Value] = [None] * (plan.total - plan.layers)
        return {"state": [*plan.states], **{name: vector + absent for name, vector in vectors.items()}}

    def _by_layer(self, norms: Sequence[Value]) -> list[Value]:
        result: list[Value] = []
        start = 0
        for size in self._sizes:
            found = [norm for norm in norms[start : start + size] if norm is not None]
            # The norm of a block out of the norms of its tensors.
            result.append(sum(norm * norm for norm in found) ** 0.5 if found else None)
            start += size
        return result


def _stack(tensors: Sequence[Tensor]) -> Tensor:
    return torch.stack(list(tensors)) if tensors else torch.empty(0)


def held_gib(device: torch.device) -> float:
    """Return GiB that this process holds now: what :func:`memory_gib` will count although no model takes it;
    0 on a GPU.
    """
    if device.type == "cuda":
        return 0.0
    # What loading left free in the heap would be taken by the model, and counted as held before.
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return _own_gib("VmRSS") or psutil.Process().memory_info().rss / 2**30


def _own_gib(name: str) -> float | None:
    """Return ``VmRSS`` (held) or ``VmHWM`` (at most) of this process in GiB;
    None where the system does not say (not Linux).

    Without pages of program files, which processes share: one that was forked sees them when it touches them, and would
    seem to take what another had before its model.
    """
    sizes = own_sizes()
    return (sizes[name] - sizes["RssFile"]) / 2**30 if sizes.keys() >= {name, "RssFile"} else None


def forget_peak(device: torch.device) -> bool:
    """Let :func:`memory_gib` forget what was taken so far: text, benchmarks and compilation are no part of the steps.

    Returns:
        Whether it could. On a CPU, Linux alone lets a process set its own mark back, to what it holds now.
    """
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return True
    try:
        # 5: the mark alone, without walking through pages (proc_pid_clear_refs(5)).
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return False
    return True


def counted_from_now(device: torch.device, held: float) -> dict[str, Any]:
    """Forget the peak so far; what ``environment.json`` says of how memory is counted.

    Args:
        held: by :func:`held_gib` before there was a model.
    """
    return {
        # Of the memory of a CPU's trainer this much is no model's: a forecast counts what comes on top.
        "memory_before_gib": round(held, 4),
        "memory_peak_of": "steps" if forget_peak(device) else "process",
    }


def memory_gib(device: torch.device) -> float:
    """Return peak memory in GiB since :func:`forget_peak`: the allocator's on a GPU,
    what this process held on a CPU.
    """
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**30
    # Not getrusage's, which also holds the peak of whatever program this process was before an exec.
    own = _own_gib("VmHWM")
    if own is not None:
        return own
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)  # macOS counts bytes, Linux KiB
