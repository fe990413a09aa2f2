"""Adapter that lets ORTModule 1.19.2 (September 2024, the last release with training) run beside today's torch.

:func:`adapt` runs once, before ``onnxruntime.training`` is imported. ORTModule traces a module with torch's TorchScript
exporter; that exporter still ships, under new names, and its output is what ORT's passes have to understand.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import pkgutil
import sys
import types
from typing import Any

import torch

VARIABLES = {
    # Without it "ORT" silently means torch whenever a graph cannot be exported.
    "ORTMODULE_FALLBACK_POLICY": "FALLBACK_DISABLE",
    # Its C++ extension does not compile against torch 2.13.
    "ORTMODULE_ENABLE_CUSTOM_AUTOGRAD": "0",
}
"""Variables that ORTModule reads when it is imported."""


@functools.cache
def load_ortmodule() -> Any:
    """Return the module ``onnxruntime.training.ortmodule``, fit to run in this process;
    it changes ``torch.onnx`` for good.

    Raises:
        ImportError: this Python has no onnxruntime-training.
    """
    # First, so that a Python without it stays as it is.
    if importlib.util.find_spec("onnxruntime") is None or importlib.util.find_spec("onnxruntime.training") is None:
        raise ImportError("no module named onnxruntime.training")
    os.environ.update(VARIABLES)
    _alias_moved_modules()
    _export_by_tracing()
    _stub_extension()
    _silence_nvtx()
    ortmodule = importlib.import_module("onnxruntime.training.ortmodule")
    _limit_threads()
    _register_symbolics(ortmodule.__name__)
    return ortmodule


def _alias_moved_modules() -> None:
    """torch 2.9 moved the TorchScript exporter; what it left at the old names lacks the private functions."""
    moved = importlib.import_module("torch.onnx._internal.torchscript_exporter")
    for info in pkgutil.iter_modules(moved.__path__):
        module = importlib.import_module(f"{moved.__name__}.{info.name}")
        homes = ["torch.onnx"] if info.name.startswith("symbolic_") else ["torch.onnx._internal"]
        if info.name in ("_globals", "_type_utils"):
            homes.append("torch.onnx")
        for home in homes:
            sys.modules[f"{home}.{info.name}"] = module
            setattr(importlib.import_module(home), info.name, module)


def _export_by_tracing() -> None:
    """torch 2.9 made another exporter the default of the same function."""
    export = torch.onnx.export

    @functools.wraps(export)
    def traced(*arguments: Any, dynamo: bool = False, **named: Any) -> Any:
        return export(*arguments, dynamo=dynamo, **named)

    torch.onnx.export = traced  # type: ignore[assignment]


def _stub_extension() -> None:
    name = "onnxruntime.training.ortmodule.torch_cpp_extensions.torch_interop_utils"
    stub = types.ModuleType(name)
    stub.clear_all_grad_fns = lambda: None  # type: ignore[attr-defined]
    sys.modules[name] = stub


def _silence_nvtx() -> None:
    """A torch for CPUs has no NVTX, and ORT marks its ranges with it all the same."""
    if not torch.cuda.is_available():
        torch.cuda.nvtx.range_push = lambda *_: 0
        torch.cuda.nvtx.range_pop = lambda: 0


def _limit_threads() -> None:
    """ORTModule has no setting for it, and ORT would take every core for each of its sessions."""
    ort: Any = importlib.import_module("onnxruntime")
    options = ort.SessionOptions

    def limited() -> Any:
        made = options()
        made.intra_op_num_threads = torch.get_num_threads()
        return made

    ort.SessionOptions = limited


def _register_symbolics(ortmodule: str) -> None:
    """Exports of a few operators that ORT's own passes stumble over, written so that they do not."""
    exporter = "torch.onnx._internal.torchscript_exporter"
    helper = importlib.import_module(f"{exporter}.symbolic_helper")
    opset9 = importlib.import_module(f"{exporter}.symbolic_opset9")
    kinds = importlib.import_module(f"{exporter}._type_utils").JitScalarType
    register = importlib.import_module(f"{ortmodule}._custom_op_symbolic_registry").register_symbolic
    gradients = importlib.import_module(f"{ortmodule}._custom_gradient_registry").CustomGradientRegistry

    def constant(graph: Any, value: torch.Tensor) -> Any:
        return graph.op("Constant", value_t=value)

    def to(graph: Any, value: Any, *arguments: Any) -> Any:
        # A cast to the type it has already is written down, too, and the fusion of RMSNorm fails over it
        # ("Argument mismatch when removing edge").
        before, after = kinds.from_value(value), opset9.to(graph, value, *arguments)
        node = after.node()
        return value if node.kind() == "onnx::Cast" and node.i("to") == before.onnx_type() else after

    @helper.parse_args("v", "i", "is")
    def unflatten(graph: Any, value: Any, axis: int, sizes: list[int]) -> Any:
        # The general form computes the new shape in the graph, which ORT's shape inference cannot follow.
        rank = helper._get_tensor_rank(value)
        assert rank is not None, "traced graphs know their ranks"
        assert axis in (-1, rank - 1), "only the last axis is unflattened in this package"
        return graph.op("Reshape", value, constant(graph, torch.tensor([0] * (rank - 1) + list(sizes))))

    @helper.parse_args("v", "is", "v", "v", "f", "none")
    def layer_norm(graph: Any, value: Any, shape: list[int], weight: Any, bias: Any, eps: float, _: Any) -> Any:
        # Of an absent input ORT builds a gradient without a name, of two norms two of the same.
        weight, bias = (
            constant(graph, torch.full(shape, fill)) if helper._is_none(given) else given
            for given, fill in ((weight, 1.0), (bias, 0.0))
        )
        inputs = (value, weight, bias)
        return graph.op("LayerNormalization", *inputs, epsilon_f=eps, axis_i=-len(shape), outputs=3)[0]

    def and_(graph: Any, value: Any, other: Any) -> Any:
        return graph.op("And", value, other)

    def detach(graph: Any, value: Any) -> Any:
        # The exporter drops it, and what a graph reports would be differentiated like what it minimises. Only of ATen
        # operators ORT lets us say that no gradient passes; `detach` itself would share memory that ORT plans to reuse.
        copied = graph.op("org.pytorch.aten::ATen", value, operator_s="detach_copy")
        copied.setType(value.type())
        return copied

    # Through ORT's registry, which wins over torch's at every export.
    for function in (to, unflatten, layer_norm, detach):
        register(function.__name__, "aten")(function)
    register("__iand_", "aten")(and_)
    gradients.register_custom_stop_gradient_edges([0], "org.pytorch.aten", "ATen", "detach_copy", "")
