"""One layer of a transformers model behind a gate: skipped, scaled, frozen and watched as a LayerPlan says."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from workbench.base.errors import RecipeError
from workbench.choices.depth.plan import LayerPlan
from workbench.ops.recompute import recomputed

# Shape legend: B rows, H heads, T positions, D width.


def equal_layers(model: nn.Module, count: int | None = None) -> dict[str, nn.ModuleList]:
    """Find the lists of layers of a foreign model, by name, the one with the most weights first.

    A list within a layer of another list is a part of that layer, and left out.

    Args:
        model: of whatever library; its tensors may be on the meta device.
        count: layers that a list must have; None for at least two.

    Returns:
        Lists of modules of one class that hold weights.
    """
    found = {
        path: module
        for path, module in model.named_modules()
        if isinstance(module, nn.ModuleList)
        and (len(module) > 1 if count is None else len(module) == count)
        and len({type(layer) for layer in module}) == 1
        and any(True for _ in module.parameters())
    }
    outer = {path: module for path, module in found.items() if not any(path.startswith(f"{o}.") for o in found)}
    return dict(sorted(outer.items(), key=lambda item: -sum(p.numel() for p in item[1].parameters())))


class Pass:
    """Knowledge that all layers of a model share during one forward pass.

    Attributes:
        first: the first layer that trains; below it nothing needs a gradient.
        bias: mask of packed documents, (B, 1, T, T); None adds none.
        taps: when a list, layers that ran append the RMS of their output.
        recomputes: layers of which the backward pass finds the input alone.
        entropies: when a list, layers write the entropy of their attention to it.
        probing: whether layers find out how they take a scale.
    """

    def __init__(self) -> None:
        self.recomputes: frozenset[int] = frozenset()
        self.entropies: list[Tensor | None] | None = None
        # Values that the layer that ran last has returned; 0 for a tensor.
        self.returns = 0
        self.probing = False
        self._styles: dict[torch.dtype, bool] = {}
        self.end()

    def begin(self, plan: LayerPlan, grad: bool, bias: Tensor | None, taps: list[Tensor] | None) -> None:
        """A forward pass under ``plan`` begins; ``bias`` is (B, 1, T, T)."""
        self.plan, self.grad, self.bias, self.taps = plan, grad, bias, taps
        self.first = plan.trains.index(True) if True in plan.trains else plan.layers

    def end(self) -> None:
        """Forget everything that belongs to one batch, tensors of shape (B, 1, T, T) first of all."""
        self.plan, self.grad, self.bias, self.taps, self.first = LayerPlan.full(0), False, None, None, 0
        self._masks: dict[int, tuple[Any, Tensor]] = {}

    def mask(self, theirs: Any) -> Any:
        """Return the model's own mask and ours in one, (B, 1, T, T); windows stay in force,
        and so does the model's style.
        """
        # Not of this form: no mask of positions against positions. What comes of it is for the model's probe to say.
        if self.bias is None or (theirs is not None and theirs.ndim != 4):
            return theirs
        if theirs is None:
            return self.bias
        # Layers of one kind get the same object, so the sum is made once for them.
        held = self._masks.get(id(theirs))
        if held is None:
            # `theirs` is kept with it: an address may be used again once its tensor is gone.
            held = self._masks[id(theirs)] = (theirs, self._joined(self.bias, theirs))
        return held[1]

    def _joined(self, bias: Tensor, theirs: Tensor) -> Tensor:
        if theirs.dtype not in self._styles:
            # Every model lets the first position see itself, and never adds 1 to a logit: so it says what it means.
            self._styles[theirs.dtype] = bool(theirs[0, 0, 0, 0])
        keeps = self._styles[theirs.dtype]
        if theirs.dtype == torch.bool:
            # True where a position may look (scaled_dot_product_attention), or where it may not (MPT).
            return theirs & (bias == 0) if keeps else theirs | (bias != 0)
        # 1 where it may look (DeBERTa), or a number that is added.
        return theirs * (bias == 0) if keeps else bias + theirs.to(bias.dtype)


class PlannedLayer(nn.Module):
    """Stands in the model's list of layers for one of them; the layer itself is registered elsewhere.

    Residual scale s multiplies every branch, as in our own blocks: with r the residual stream as the layer computes it
    and y the stream as it should be, each norm that reads the stream gets y <- y + s (r' - r) in place of its r'. That
    is h = x + s Attn(x), h + s FFN(h) for a layer whose output is its input plus branches (pre-norm), and LN(x + s
    branch) for one that ends in a norm (post-norm, BERT). Which norms read the stream is measured: their input grows
    with the layer's. So is which of the two a layer is: a pre-norm layer passes on an input that is a thousand times
    as large, a post-norm layer does not.
    """

    def __init__(self, index: int, layer: nn.Module, state: Pass, call: Callable[..., Any] | None = None) -> None:
        super().__init__()
        # In a tuple: weights have one name, that of the backbone's blocks.
        self._own = (layer, state)
        # Not always the layer itself: this may stand in for its `forward` alone.
        self._call = (call or layer,)
        self._handles: list[RemovableHandle] = []
        self._index = index
        self._parameters_in_order = list(inspect.signature(type(layer).forward).parameters)[1:]
        # How many values the layer returns, 0 for a tensor; None until it has run.
        self._returns: int | None = None
        self._residual = _Residual()
        self.scaling = "unknown"

    def compile(self, **options: object) -> None:
        """Compile what the layer computes; a layer that does not run still costs nothing."""
        self._call = (torch.compile(self._call[0], **options),)  # type: ignore[call-overload]

    def remove(self) -> None:
        """Take back what was put on the layer's norms."""
        for handle in self._handles:
            handle.remove()

    def __getattr__(self, name: str) -> Any:
        # What a model asks its layers for (attention_type and the like) is the layer's to answer.
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.__dict__["_own"][0], name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the layer would return for states (B, T, D), or those states if it does not run."""
        layer, state = self._own
        x_BTD: Tensor = args[0] if args else kwargs["hidden_states"]
        index, plan = self._index, state.plan
        frozen_below = state.grad and index < state.first
        if index >= plan.layers or not plan.runs[index]:
            return self._wrap(x_BTD.detach() if frozen_below else x_BTD)
        args, kwargs = self._masked(args, kwargs)
        if state.probing:
            self._probe(args, kwargs)
        with ExitStack() as stack:
            if frozen_below:
                stack.enter_context(torch.no_grad())
            if state.entropies is not None:
                stack.enter_context(_watched(layer, self._write))
            if index in state.recomputes:
                result = recomputed(self._scaled, x_BTD, plan.scale[index], args, kwargs)
            else:
                result = self._scaled(x_BTD, plan.scale[index], args, kwargs)
        out_BTD = result[0] if isinstance(result, tuple) else result
        if state.taps is not None:
            # One number per layer and none of them read here: reading would wait for the device.
            state.taps.append(torch.linalg.vector_norm(out_BTD.detach(), dtype=torch.float32) / out_BTD.numel() ** 0.5)
        return result

    def _scaled(self, x_BTD: Tensor, scale: float, args: Any, kwargs: Any) -> Any:
        layer = self._own[0]
        if scale == 1.0:
            return self._keep(self._call[0](*args, **kwargs))
        # A fresh 0-d tensor, not a number: a compiled layer would take a number for a constant and recompile.
        scale_ = torch.full((), scale, device=x_BTD.device)
        if self.scaling == "none":
            raise RecipeError(
                f"a {type(layer).__name__} cannot be scaled: it neither adds to its input nor ends in a norm; set "
                "depth.rescale to false, or use a depth method that does not scale"
            )
        self._residual.begin(x_BTD, scale_)
        try:
            result = self._keep(self._call[0](*args, **kwargs))
            out = self._residual.scaled(result[0] if isinstance(result, tuple) else result)
        finally:
            self._residual.end()
        return (out, *result[1:]) if isinstance(result, tuple) else out

    def _keep(self, result: Any) -> Any:
        self._returns = self._own[1].returns = len(result) if isinstance(result, tuple) else 0
        return result

    def _wrap(self, x_BTD: Tensor) -> Any:
        # A layer that does not exist yet has never run: it gives as many as the layers before it.
        returns = self._own[1].returns if self._returns is None else self._returns
        return (x_BTD, *[None] * (returns - 1)) if returns else x_BTD

    def _masked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the arguments with our mask in them, and the wish for attention weights where a layer takes it."""
        state = self._own[1]
        changes: dict[str, Callable[[Any], Any]] = {"attention_mask": state.mask}
        if state.entropies is not None:
            changes["output_attentions"] = lambda theirs: True
        for name in [name for name in changes if name in self._parameters_in_order]:
            # Some models pass by position what others pass by name.
            place = self._parameters_in_order.index(name)
            if place < len(args):
                args = (*args[:place], changes[name](args[place]), *args[place + 1 :])
            else:
                kwargs = {**kwargs, name: changes[name](kwargs.get(name))}
        return args, kwargs

    def _write(self, entropy: Tensor) -> None:
        entropies = self._own[1].entropies
        assert entropies is not None
        if entropies[self._index] is None:
            entropies[self._index] = entropy

    def _probe(self, args: Any, kwargs: Any) -> None:
        """Find out, on a real input and once, what a residual scale means for this layer."""
        layer = self._own[0]
        if self.scaling != "unknown" or not args:
            return
        x_BTD, calls = args[0], []
        hooks = [
            module.register_forward_hook(lambda m, i, o: calls.append((m, i[0], o)))
            for module in layer.modules()
            if "Norm" in type(module).__name__
        ]
        try:
            out = _first(self._keep(self._call[0](*args, **kwargs)))
            last = calls[-1][2] if calls else None
            # Of this pass, all norms of a post-norm layer whose shape is the stream's read it.
            post = last is not None and torch.equal(last, out)
            readers = [norm for norm, states, _ in calls if states.shape == x_BTD.shape]
            calls.clear()
            large_BTD = x_BTD * 1000
            out = _first(self._call[0](large_BTD, *args[1:], **kwargs))
        finally:
            for hook in hooks:
                hook.remove()

        def grew(states: Tensor) -> bool:
            return states.shape == x_BTD.shape and bool(states.norm() > 0.5 * large_BTD.norm())

        pre = grew(out)
        if pre:
            # Norms of a branch's output or of heads read what another norm has already brought to size.
            readers = [norm for norm, states, _ in calls if grew(states)]
        self.scaling = "branches" if readers and (pre or post) else "none"
        if self.scaling == "branches":
            for norm in readers:
                self._handles.append(norm.register_forward_pre_hook(self._residual.before))
                if not pre:
                    self._handles.append(norm.register_forward_hook(self._residual.after))
        # Without norms one branch is all that is seen of it, y = x + s (layer(x) - x).
        elif not calls and self._passes_on(args, kwargs):
            self.scaling = "branches"

    def _passes_on(self, args: Any, kwargs: Any) -> bool:
        """Return whether the layer without its weights is the identity, so that all it does is add to its input."""
        layer = self._own[0]
        silent = {name: torch.zeros_like(parameter) for name, parameter in layer.named_parameters()}
        return torch.equal(_first(torch.func.functional_call(layer, silent, args, kwargs)), args[0])


def _first(result: Any) -> Tensor:
    states: Tensor = result[0] if isinstance(result, tuple) else result
    return states


class _Residual:
    """Scales what the norms of a layer read of its residual stream, (B, T, D), while a scale is set."""

    def __init__(self) -> None:
        self.end()

    def begin(self, x_BTD: Tensor, scale: Tensor) -> None:
        """The layer is about to run on states (B, T, D); ``scale`` is 0-d."""
        self.scale: Tensor | None = scale
        # The stream as the layer computes it, and as it is with branches scaled.
        self.raw: Tensor | None = x_BTD
        self.stream: Tensor | None = x_BTD

    def end(self) -> None:
        """The layer has run: nothing of a batch outlives it."""
        self.scale = self.raw = self.stream = None

    def scaled(self, r_BTD: Tensor) -> Tensor:
        """Return the stream (B, T, D) with the branches that led the layer's own stream to ``r_BTD`` scaled."""
        assert self.scale is not None
        assert self.stream is not None
        assert self.raw is not None
        return self.stream + self.scale * (r_BTD - self.raw)

    def before(self, module: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """A norm reads the stream."""
        if self.scale is None:
            return None
        self.stream, self.raw = self.scaled(args[0]), args[0]
        return (self.stream, *args[1:])

    def after(self, module: nn.Module, args: tuple[Any, ...], out: Tensor) -> None:
        """The output of a post-norm layer's norm is where the next branch starts from."""
        if self.scale is not None:
            self.raw = self.stream = out


@contextmanager
def _watched(layer: nn.Module, say: Callable[[Tensor], None]) -> Iterator[None]:
    """Tell, while entered, the entropy of the attention weights that any part of ``layer`` returns."""

    def look(module: nn.Module, args: Any, out: Any) -> None:
        for part in out if isinstance(out, tuple) else ():
            # (B, H, T, T), and every row a distribution: nothing else that a layer returns looks like it.
            if isinstance(part, Tensor) and part.ndim == 4 and part.shape[-1] == part.shape[-2]:
                p = part.float()
                if torch.allclose(p.sum(-1), torch.ones(()).to(p), atol=1e-2):
                    say(torch.special.entr(p).sum(-1).mean())

    hooks = [module.register_forward_hook(look) for module in layer.modules()]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
