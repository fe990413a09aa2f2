"""Tensors without memory, on which a model's own code runs in milliseconds: shapes, types and places, but no numbers.

torch's fake tensors do the same at ten times the price per operation: they check what we need not, since the same code
trains for real afterwards.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from workbench.choices.architectures.architecture import Architecture
from workbench.choices.data.tokens import Vocabulary
from workbench.choices.execution import recompute_operations
from workbench.choices.objectives.objective import Builder, Objective, TrainingModel

_one_at_a_time = threading.Lock()


class MetaTensor(Tensor):
    """A tensor that is a CPU's to autograd and autocast, and holds nothing but a meta tensor."""

    meta: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, meta: Tensor) -> MetaTensor:
        tensor: MetaTensor = Tensor._make_wrapper_subclass(
            cls, meta.size(), strides=meta.stride(), storage_offset=meta.storage_offset(), dtype=meta.dtype,
            device=torch.device("cpu"),
        )  # fmt: skip
        tensor.meta = meta
        return tensor

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        raise AssertionError(f"{func} outside of a MetaTensorMode")


class MetaTensorMode(TorchDispatchMode):
    """Runs operations on meta tensors and returns a :class:`MetaTensor`; :meth:`saw` is called for each."""

    def saw(self, name: str, read: list[Tensor], written: list[Tensor]) -> None:
        """An operation that was no view: its name in aten, and the meta tensors it read and wrote."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # torch would wrap the method below against being compiled, a tenth of the time; nothing compiles in here.
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        # A model that looks at a number of its mask finds what a mask of booleans holds.
        if name == "_local_scalar_dense":
            return 1
        if name == "_fused_sdp_choice":
            return _fused_choice(*args, **(kwargs or {}))
        read: list[Tensor] = []
        inner = [_inner(value, read) for value in args]
        if kwargs:
            kwargs = {key: _inner(value, read) for key, value in kwargs.items()}
            if kwargs.get("device") is not None:
                kwargs["device"] = torch.device("meta")
        out, view = _result(func, inner, kwargs or {}, read)
        if isinstance(out, Tensor):
            if not view:
                self.saw(name, read, [out])
            return _outer(out, args)
        if isinstance(out, (tuple, list)):
            tensors = [t for t in out if isinstance(t, Tensor)]
            if tensors and not view:
                self.saw(name, read, tensors)
            return type(out)(_outer(t, args) if isinstance(t, Tensor) else t for t in out)
        return out


class ModelSpec(NamedTuple):
    """All that decides a model but its weights.

    Attributes:
        vocabulary: V rows of the embedding.
        longest: T that the model is built for.
        head: positions that it works on, as in ``TrainingModel.lay_out``.
        operations: that its blocks compute again in the backward pass.
    """

    architecture: Architecture
    objective: Objective
    vocabulary: Vocabulary
    longest: int
    attention: str = "plain"
    head: str = "labelled"
    operations: frozenset[str] = frozenset()


@functools.lru_cache(maxsize=8)
def meta_model(spec: ModelSpec) -> TrainingModel:
    """Return the model with its head on the meta device: shapes of any size, no memory. Shared,
    so never to be changed.
    """
    architecture, objective, vocabulary, longest, attention, head, operations = spec
    with torch.device("meta"):
        model = objective.build(Builder(architecture, vocabulary, longest, 0, objective.causal, attention))
    model.lay_out(head, "removed")
    for stack in model.stacks().values():
        recompute_operations(stack, operations)
    return model


@contextlib.contextmanager
def meta_parameters(model: nn.Module) -> Iterator[None]:
    """Inside, parameters and buffers of a meta model are MetaTensors, ties kept. Enter it before a MetaTensorMode.

    One thread at a time: models are shared (:func:`meta_model`), and a page's forecasts are made in several threads.
    """
    with _one_at_a_time, _swapped(model):
        yield


@contextlib.contextmanager
def _swapped(model: nn.Module) -> Iterator[None]:
    wrappers: dict[int, Tensor] = {}
    swapped: list[tuple[dict[str, Any], str, Tensor]] = []
    for module in model.modules():
        tables: tuple[dict[str, Any], ...] = (module._parameters, module._buffers)
        for own in tables:
            for name, tensor in own.items():
                if tensor is None:
                    continue
                if id(tensor) not in wrappers:
                    wrapped = MetaTensor(tensor.detach())
                    wrappers[id(tensor)] = wrapped.requires_grad_(tensor.requires_grad)
                swapped.append((own, name, tensor))
                own[name] = wrappers[id(tensor)]
    try:
        yield
    finally:
        for own, name, tensor in swapped:
            own[name] = tensor


def _inner(value: Any, read: list[Tensor]) -> Any:
    """Return the meta tensors behind an argument; they are added to ``read``."""
    if type(value) is MetaTensor:
        read.append(value.meta)
        return value.meta
    if isinstance(value, Tensor):
        # Made from numbers while the mode was on: torch.tensor(3).
        meta = value if value.is_meta else value.detach().to("meta")
        read.append(meta)
        return meta
    if isinstance(value, (tuple, list)):
        return type(value)([_inner(each, read) for each in value])
    return value


def _outer(out: Tensor, args: Any) -> Tensor:
    """Return ``out`` as a MetaTensor; an operation in place returns its argument."""
    for value in args:
        if type(value) is MetaTensor and value.meta is out:
            return value
    return MetaTensor(out)


_RESULTS: dict[Any, Any] = {}
"""Shapes, strides and types of results by operation and arguments: torch asks Python code for many, 1 ms each."""
_MOST_RESULTS = 20_000


def _result(func: Any, args: list[Any], kwargs: dict[str, Any], read: list[Tensor]) -> tuple[Any, bool]:
    """Return ``func(*args, **kwargs)`` on meta tensors, and whether it is a view: in an argument's memory,
    unchanged.
    """
    sort = _sort(func)
    if sort == "in place":
        return args[0], False
    if sort == "fresh":
        try:
            key = (func, *map(_description, args), *((k, _description(v)) for k, v in kwargs.items()))
            known = _RESULTS.get(key)
        except TypeError:  # something among the arguments has no hash
            return func(*args, **kwargs), False
        if known is not None:
            return _rebuilt(known), False
        out = func(*args, **kwargs)
        shape = _noted(out)
        if shape is not None:
            if len(_RESULTS) >= _MOST_RESULTS:
                _RESULTS.clear()
            _RESULTS[key] = shape
        return out, False
    out = func(*args, **kwargs)
    given = {tensor.untyped_storage()._cdata for tensor in read}
    written = [t for t in (out if isinstance(out, (tuple, list)) else (out,)) if isinstance(t, Tensor)]
    return out, not func._schema.is_mutable and all(t.untyped_storage()._cdata in given for t in written)


@functools.lru_cache(maxsize=2048)
def _sort(func: Any) -> str:
    """Return ``in place``: gives back its first argument; ``fresh``: its results have memory of their own;
    else ``other``.
    """
    returns = func._schema.returns
    if func._schema.is_mutable:
        return "in place" if torch.Tag.pointwise in func.tags and len(returns) == 1 else "other"
    # The one operation that says it copies and does not.
    aliases = any(each.alias_info is not None for each in returns) or func is torch.ops.aten._unsafe_view.default
    return "other" if aliases else "fresh"


def _description(value: Any) -> Any:
    """Return the part of an argument that decides a result's shape; plain numbers do so by type, or as a size."""
    if isinstance(value, Tensor):
        return value.dtype, value.shape, value.stride()
    if isinstance(value, (tuple, list)):
        return tuple(map(_description, value))
    # 1, 1.0 and True are equal as keys, and promote types differently.
    return type(value), value


def _noted(out: Any) -> Any:
    if isinstance(out, Tensor):
        return out.shape, out.stride(), out.dtype
    if isinstance(out, (tuple, list)) and all(isinstance(each, Tensor) for each in out):
        return [_noted(each) for each in out]
    return None


def _rebuilt(noted: Any) -> Any:
    if isinstance(noted, list):
        return tuple(map(_rebuilt, noted))
    shape, stride, dtype = noted
    return torch.empty_strided(shape, stride, dtype=dtype, device="meta")


def _fused_choice(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None, *rest: Any, **options: Any
) -> int:
    """Return torch's choice for these on a CPU: found with real tensors of the same kind, a few positions long."""
    small: list[Any] = [
        torch.zeros([min(4, side) for side in t.shape[:-1]] + [t.shape[-1]], dtype=t.dtype) for t in (query, key, value)
    ]
    if mask is not None:
        mask = torch.zeros([min(4, side) for side in mask.shape], dtype=mask.dtype, requires_grad=mask.requires_grad)
    choose: Any = torch._fused_sdp_choice
    return int(choose(*small, mask, *rest, **options))
