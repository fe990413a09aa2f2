"""The stack of layers of a user's model: found in it, put under a LayerPlan while a run trains, and left as it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from workbench.base.errors import RecipeError, unknown
from workbench.choices.architectures.architecture import Backbone
from workbench.choices.architectures.transformers_layer import Pass, PlannedLayer, equal_layers
from workbench.choices.depth.plan import LayerPlan


def stack_named(model: nn.Module, path: str) -> nn.Module:
    """Return the list of layers that somebody named.

    Raises:
        RecipeError: the model has no such module, or it is no list of modules with weights.
    """
    modules = dict(model.named_modules())
    if path not in modules:
        lists = list(equal_layers(model)) or [
            name for name, module in modules.items() if isinstance(module, nn.Sequential)
        ]
        raise RecipeError(unknown("layers", path, lists or list(modules)[1:]))
    module = modules[path]
    if not isinstance(module, nn.ModuleList | nn.Sequential) or not any(True for _ in module.parameters()):
        such = "".join(f", such as '{name}'" for name in list(equal_layers(model))[:1])
        raise RecipeError(
            f"layers: '{path}' is a {type(module).__name__}; name a torch.nn.ModuleList or Sequential of layers with "
            f"weights{such}"
        )
    return module


class OwnBackbone(Backbone):
    """Layers of a user's model under a plan, each at its own place: what runs instead is its ``forward``.

    Without a stack the model as a whole is the one layer, which always runs. What a plan means is what
    :class:`workbench.choices.architectures.stack.Stack` says; weights that were frozen before the run stay frozen.

    Args:
        model: of the user.
        layers: its layers, or the model itself.

    Attributes:
        planned: what stands in for the layers' ``forward`` between :meth:`attach` and :meth:`detach`; empty before.
    """

    reads_attention: ClassVar[bool] = False

    def __init__(self, model: nn.Module, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(layers)
        self.planned: list[PlannedLayer] = []
        self._model = (model,)
        self._pass = Pass()
        self._frozen = {id(parameter) for parameter in model.parameters() if not parameter.requires_grad}
        self._trains: tuple[bool, ...] | None = None
        # As they are now: an engine may put something of its own in their place before the run does.
        self._undo = [_restoring(layer) for layer in layers]

    def attach(self) -> None:
        """From now on the layers ask the plan that :meth:`begin` was given; until :meth:`detach`."""
        for index, layer in enumerate(self.blocks):
            self.planned.append(PlannedLayer(index, layer, self._pass, call=layer.forward))
            layer.forward = self.planned[-1].forward

    def detach(self) -> None:
        """Leave the model as it was, but for its weights."""
        for planned in self.planned:
            planned.remove()
        for undo in self._undo:
            undo()
        self.planned = []
        self._pass.end()
        for parameter in self._model[0].parameters():
            parameter.requires_grad_(id(parameter) not in self._frozen)
            parameter.grad = None

    def begin(self, plan: LayerPlan, *, probing: bool = False) -> None:
        """The next pass through the model, and what is computed again for its backward pass, run under ``plan``."""
        grad = torch.is_grad_enabled()
        if grad and plan.trains != self._trains:
            for block, trains in zip(self.blocks, plan.trains, strict=False):
                self.set_training(block.parameters(), trains)
            self._trains = plan.trains
        self._pass.probing = probing
        self._pass.recomputes = self.recomputes
        self._pass.begin(plan, grad, None, self.taps)

    def freeze_outside(self, plan: LayerPlan) -> None:
        """Switch gradients of what is outside the layers: what was registered before them counts as below them."""
        inside, below = {id(parameter) for parameter in self.blocks.parameters()}, True
        for parameter in self._model[0].parameters():
            if id(parameter) in inside:
                below = False
            else:
                self.set_training([parameter], plan.embedding if below else plan.head)

    def set_training(self, parameters: Any, trains: bool) -> None:
        """Switch gradients of parameters, of any shape, that were not frozen before the run."""
        for parameter in parameters:
            if id(parameter) not in self._frozen:
                parameter.requires_grad_(trains)
                if not trains:
                    parameter.grad = None

    def compile_blocks(self, **options: object) -> None:
        """Compile layer by layer, so that a dropped one costs nothing; without a stack the model as a whole."""
        torch._dynamo.config.recompile_limit = max(torch._dynamo.config.recompile_limit, 32)
        for planned in self.planned:
            planned.compile(**options)
        if not self.planned:
            model = self._model[0]
            model.compile(**options)
            self._undo.append(lambda: setattr(model, "_compiled_call_impl", None))


def _restoring(layer: nn.Module) -> Callable[[], None]:
    replaced = vars(layer).get("forward")

    def restore() -> None:
        if replaced is None:
            vars(layer).pop("forward", None)
        else:
            layer.forward = replaced

    return restore


class Watched:
    """Record one pass through layers: their order, their price, and whether each could be left out.

    Args:
        layers: to look at while entered.

    Attributes:
        order: indices of the layers as they were called.
        problems: of a layer whose output could not stand in for its input, by index.
        changed: index of the first layer that was not called with the output of the one before; None where all were.
        flops: of each layer's matrix products and the like. total: of the whole pass.
    """

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        self._layers = layers
        self.order: list[int] = []
        self.problems: dict[int, str] = {}
        self.changed: int | None = None
        self.flops = [0.0] * len(layers)
        self.total = 0.0
        self._last: tuple[Tensor, int] | None = None

    def __enter__(self) -> Watched:
        self._counter = FlopCounterMode(display=False)
        self._counter.__enter__()
        self._handles: list[Any] = [
            layer.register_forward_pre_hook(self._before(index), with_kwargs=True)
            for index, layer in enumerate(self._layers)
        ]
        self._handles += [
            layer.register_forward_hook(self._look(index), with_kwargs=True) for index, layer in enumerate(self._layers)
        ]
        return self

    def __exit__(self, *error: Any) -> None:
        for handle in self._handles:
            handle.remove()
        self.total = float(self._counter.get_total_flops())
        self._counter.__exit__(*error)
        self._last = None

    def _before(self, index: int) -> Callable[..., None]:
        def before(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            self.flops[index] -= self._counter.get_total_flops()
            if self._last is not None and self.changed is None and not _is_still(_stream(args, kwargs), *self._last):
                self.changed = index

        return before

    def _look(self, index: int) -> Callable[..., None]:
        def look(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> None:
            self.order.append(index)
            self.flops[index] += self._counter.get_total_flops()
            x, y = _stream(args, kwargs), out[0] if isinstance(out, tuple) else out
            self._last = (y, _writes(y)) if isinstance(y, Tensor) else None
            if not isinstance(x, Tensor) or not isinstance(y, Tensor):
                self.problems[index] = "does not take and give a tensor first"
            elif x.shape != y.shape:
                self.problems[index] = f"makes {tuple(y.shape)} of {tuple(x.shape)}"

        return look

    def problem(self) -> str:
        """Return the reason why no plan can be carried out on these layers; empty when one can."""
        if self.problems:
            index, what = next(iter(self.problems.items()))
            return f"layer {index + 1} {what}, and a layer that is left out passes its input on"
        if self.order != list(range(len(self._layers))):
            called = ", ".join(str(index + 1) for index in self.order[:8]) or "none"
            return f"of {len(self._layers)} layers a pass calls {called}, and not each of them once, in their order"
        return ""

    def change(self) -> str:
        """Say where the model computes between two layers, so that none can be left out; empty where it does not."""
        if self.changed is None:
            return ""
        return (
            f"layer {self.changed + 1} is not called with the output of layer {self.changed}: the model computes "
            "something between them, which would go on with the input of a layer that is left out as if that were its "
            "output (`x = x + layer(x)` would double x)"
        )


def _stream(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0] if args else kwargs.get("hidden_states")


def _is_still(x: Any, output: Tensor, version: int) -> bool:
    """Return True if a layer is called with the output of another: the same memory, and nothing written to it since.

    Not whether their values are equal: a layer that begins with zeros makes `x + layer(x)` equal to x.
    """
    if not isinstance(x, Tensor):
        return False
    return x.shape == output.shape and x.data_ptr() == output.data_ptr() and _writes(x) == version


def _writes(x: Tensor) -> int:
    # Torch does not count them for tensors of its inference mode.
    return 0 if x.is_inference() else x._version
