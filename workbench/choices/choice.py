"""Base of all choices: frozen data with bounds and help, found by axis and kind, built into a torch object.

A *choice* is one entry of one axis (``optimizer``, ``objective``, ...). Declaring the class is all it takes:

    class Lans(Optimizer):
        \"\"\"Layerwise adaptive Nesterov steps for very large batches.\"\"\"

        kind: Literal["lans"] = "lans"
        lr: float = knob(6.75e-3, "peak learning rate", gt=0, scale="log")

The form in the Lab, the CLI's ``--set``, the JSON and the contract tests all follow from that declaration.
Other packages add choices with an entry point in the group ``workbench.choices``.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
import typing
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, SerializeAsAny, model_validator
from pydantic_core import PydanticCustomError

from workbench.base.errors import check_known, unknown
from workbench.base.fields import put
from workbench.base.plugins import load_plugins
from workbench.choices.knob import BOUNDS, MOVES, as_plain, bounds_of, known_fields, legal_bounds, not_a_number
from workbench.choices.knob import knob as knob
from workbench.choices.progress import Progress

ENTRY_POINT_GROUP = "workbench.choices"
HEADINGS = ["What it does", "The maths", "When to use", "When not", "Knobs", "Evidence here", "Sources"]
"""Sections of a card, in this order."""
# Filled by class definitions: importing a module is all it takes to register what is in it.
_REGISTRY: dict[str, dict[str, type[Choice]]] = {}


class Problem(NamedTuple):
    """The reason why a combination cannot be trained; ``path`` names the knob (``architecture.heads``)."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def _out_of_bounds(value: Any, bounds: Mapping[str, float]) -> str:
    """Return why a number, or a value that a schedule reaches, is not allowed; empty when all are."""
    reached: tuple[float, ...] = value.extremes() if isinstance(value, Choice) else (value,)  # type: ignore[attr-defined]
    for number in reached:
        if not all(BOUNDS[word][1](number, bound) for word, bound in bounds.items()):
            legal = legal_bounds(bounds)
            got = f"{number:g}" if not isinstance(value, Choice) else f"a schedule that reaches {number:g}: {value!r}"
            return f"must be {legal} at all times, got {got}"
    return ""


class Choice(BaseModel):
    """Base of all choices: frozen, closed (no unknown fields), registered under ``axis`` and ``kind``.

    Subclasses that carry ``kind: Literal["name"] = "name"`` are registered when they are defined.
    """

    # Frozen, because a hash must not go stale. Defaults are checked too: one that breaks its own bounds is a bug that
    # no input of a user would show. No NaN: it equals nothing, so two recipes that hold it would always differ.
    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)
    axis: ClassVar[str] = ""
    # Methods that the base of an axis only describes, and each kind defines.
    provides: ClassVar[tuple[str, ...]] = ()
    # Of a choice that stands for an object of the user's (``workbench.accelerate``): a recipe is read with it, but none
    # is composed or launched, since the object is in no file.
    placeholder: ClassVar[str] = ""
    # False for a choice that only this program makes: read and launched with a recipe, never composed.
    listed: ClassVar[bool] = True

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        field = cls.model_fields.get("kind")
        if field is not None and isinstance(field.default, str):
            known = _REGISTRY.setdefault(cls.axis, {})
            other = known.get(field.default)
            # The same module may define a kind again (a notebook cell run twice, importlib.reload).
            if other is not None and other.__module__ != cls.__module__:
                raise TypeError(f"{cls.axis}.kind '{field.default}' is already defined by {other.__module__}")
            if lacking := [] if cls.placeholder else [f"{name}()" for name in cls.provides if _inherits(cls, name)]:
                kind = f"{cls.axis}.kind '{field.default}'"
                raise TypeError(f"{kind}, {cls.__module__}.{cls.__qualname__}, lacks {', '.join(lacking)}")
            known[field.default] = cls

    # Ahead of pydantic's own refusal of extra fields, which names neither the legal knobs nor the nearest.
    @model_validator(mode="before")
    @classmethod
    def _known_knobs(cls, value: Any) -> Any:
        if isinstance(value, Mapping):
            # One text, or choice, is a list of one: a path, a package, a preparation step.
            lists = {name for name, field in cls.model_fields.items() if _takes_a_list(field.annotation)}
            plain = {name: as_plain(given) for name, given in value.items()}
            value = {name: [each] if name in lists and isinstance(each, str | Mapping) else each
                     for name, each in plain.items()}  # fmt: skip
        for name, given in value.items() if isinstance(value, Mapping) else ():
            field = cls.model_fields.get(name)
            if field and MOVES in field.metadata and isinstance(given, str) and not _schedule_meant(given):
                why = not_a_number(field, given)
                raise PydanticCustomError("knob", "{why}", {"name": name, "why": why})
            # Before the nearest name is guessed: who sets it means another kind, not another knob.
            kinds = [] if name in cls.model_fields else _kinds_with(cls.axis, name)
            if kinds:
                here, there = cls.model_fields["kind"].default, " and ".join(map(repr, kinds))
                legal = ", ".join(sorted(cls.model_fields))
                why = f"not a knob of '{here}' but of {there}, chosen by {cls.axis}={kinds[0]}; '{here}' has {legal}"
                raise PydanticCustomError("knob", "{why}", {"name": name, "why": why})
        return known_fields(cls, value)

    @model_validator(mode="after")
    def _moving_knobs_in_bounds(self) -> Choice:
        for name, field in type(self).model_fields.items():
            if MOVES in field.metadata and (why := _out_of_bounds(getattr(self, name), bounds_of(field))):
                raise PydanticCustomError("knob", "{why}", {"name": name, "why": why})
        return self

    def scheduled_values(self, progress: Progress) -> dict[str, float]:
        """Return every knob that may move, by path, when that many steps, tokens and seconds are done:
        what telemetry plots.

        Choices that derive a number of their own from the progress add it here.
        """
        values: dict[str, float] = {}
        for name, field in type(self).model_fields.items():
            value: Any = getattr(self, name)
            if MOVES in field.metadata:
                values[name] = value if isinstance(value, (int, float)) else value.at(progress)
            elif isinstance(value, Choice):
                values |= {f"{name}.{path}": number for path, number in value.scheduled_values(progress).items()}
        return values

    def located(self) -> dict[str, Any]:
        """Return absolute paths, by knob, for those that mean other files in another working folder."""
        inner = {name: getattr(self, name) for name in type(self).model_fields}
        found = {f"{name}.{path}": value for name, choice in inner.items() if isinstance(choice, Choice)
                 for path, value in choice.located().items()}  # fmt: skip
        lists = {name: value for name, value in inner.items() if isinstance(value, tuple)}
        # A path leads to no item of a list: the list as a whole, where it has any.
        return found | {name: [_as_located(each) for each in value] for name, value in lists.items()
                        if any(isinstance(each, Choice) and each.located() for each in value)}  # fmt: skip

    def problems(self, recipe: Any) -> Iterator[Problem]:
        """Refuse combinations with the rest of ``recipe`` that cannot work (none unless overridden)."""
        return iter(())

    def problems_together(self, recipe: Any, processes: int) -> Iterator[Problem]:
        """Yield why so many processes cannot train ``recipe`` together (none unless overridden)."""
        return iter(())

    @classmethod
    def shared_knobs(cls, other: type[Choice]) -> tuple[str, ...]:
        """Return knobs whose values stay when ``other`` gives way to this kind:
        those that both take from one declaration.

        A kind that declares a knob of its base anew (a learning rate that suits it) means something of its own by it.
        """
        return tuple(name for name in cls.model_fields if name != "kind" and _declares(cls, name, other))

    @classmethod
    def card_path(cls) -> Path:
        """Return the path of its card, which lies beside the code, also in other packages."""
        return Path(inspect.getfile(cls)).with_suffix(".md")

    @classmethod
    def card(cls) -> str:
        """Return its card as Markdown: what it does, when not to use it, our evidence; else its docstring."""
        path = cls.card_path()
        return path.read_text(encoding="utf-8") if path.is_file() else inspect.cleandoc(cls.__doc__ or cls.__name__)

    @classmethod
    def summary(cls) -> str:
        """Return first line of the docstring, without its markup: what a drop-down shows."""
        return (cls.__doc__ or cls.__name__).strip().splitlines()[0].replace("``", "")


def card_problems(model: type[Choice]) -> list[str]:
    """Return, in sentences, what the card of a choice lacks; nothing for a whole one."""
    path, kind = model.card_path(), model.model_fields["kind"].default
    if not path.is_file():
        return [f"{kind} has no card: {path}"]
    card = path.read_text(encoding="utf-8")
    found = re.findall(r"^## (.+)$", card, re.MULTILINE)
    if not card.startswith("# ") or found != HEADINGS:
        return [f"the card of {kind} has the sections {found}; they must be {HEADINGS}, below a title"]
    sections = dict(zip(HEADINGS, re.split(r"^## .+$", card, flags=re.MULTILINE)[1:], strict=True))
    own = model.model_fields.keys() - model.__mro__[1].model_fields.keys() - {"kind"}  # type: ignore[attr-defined]
    return [
        *(f"the card of {kind} says nothing in '{name}'" for name, text in sections.items() if len(text.split()) < 4),
        *(
            f"the card of {kind} does not speak of {name}"
            for name in sorted(own)
            if f"`{name}`" not in sections["Knobs"]
        ),
    ]


def _as_located(choice: Choice) -> dict[str, Any]:
    """Return the fields of a choice with absolute paths."""
    fields: dict[str, Any] = choice.model_dump(mode="json")
    for path, value in choice.located().items():
        fields = put(fields, path, value)
    return fields


def _takes_a_list(annotation: Any) -> bool:
    """Return whether a field holds several texts or choices."""
    if typing.get_origin(annotation) is not tuple:
        return False
    item = typing.get_args(annotation)[0]
    item = typing.get_args(item)[0] if typing.get_origin(item) is Annotated else item
    return isinstance(item, type) and (item is str or issubclass(item, Choice))


def _inherits(kind: type[Choice], method: str) -> bool:
    """Return whether a method is still that of the axis's base."""
    base = next(each for each in kind.__mro__ if "provides" in vars(each))
    return getattr(kind, method) is getattr(base, method)


def _schedule_meant(text: str) -> bool:
    """Return whether a text is the name of a schedule, or nearly."""
    return bool(difflib.get_close_matches(text, readable("schedule"), n=1, cutoff=0.5))


def _declares(model: type[Choice], name: str, other: type[Choice]) -> bool:
    """Return whether two choices take a knob from one class."""
    first, second = (
        next((base for base in each.__mro__ if name in inspect.get_annotations(base)), None) for each in (model, other)
    )
    return first is not None and first is second


def _kinds_with(axis: str, knob: str) -> list[str]:
    """Return registered kinds of an axis that have this knob and can be chosen."""
    known = _REGISTRY.get(axis, {}).items()
    return [kind for kind, model in known if knob in model.model_fields and model.listed and not model.placeholder]


def registry(axis: str) -> Mapping[str, type[Choice]]:
    """Return every registered choice of an axis that a recipe can be composed of, by kind, in alphabetical order.

    Raises:
        ValueError: no such axis.
    """
    return {kind: model for kind, model in readable(axis).items() if model.listed and not model.placeholder}


def readable(axis: str) -> Mapping[str, type[Choice]]:
    """Return :func:`registry`, and what is never offered: all that a recipe may be read with."""
    load_plugins(ENTRY_POINT_GROUP)
    check_known("axis", axis, _REGISTRY, ValueError)
    return dict(sorted(_REGISTRY[axis].items()))


def resolve(axis: str, value: Any) -> Any:
    """Return a kind's name or a mapping with ``kind`` -> the choice itself; anything else is left to pydantic."""
    if isinstance(value, Choice):
        if value.axis != axis:
            raise PydanticCustomError(
                "axis", "a choice of axis '{got}' stands where '{axis}' is expected", {"got": value.axis, "axis": axis}
            )
        return value
    # A bare name is short for the kind with its defaults: `depth=full` on the command line.
    if isinstance(value, str):
        value = {"kind": value}
    if not isinstance(value, Mapping):
        return value
    kind, legal, known = value.get("kind"), registry(axis), readable(axis)
    if kind is None:
        why = f"missing; a mapping must name its choice: one of {', '.join(legal)}"
        raise PydanticCustomError("kind", "{why}", {"why": why})
    # Not every JSON value can be looked up: a list cannot.
    if not isinstance(kind, str) or kind not in known:
        raise PydanticCustomError("kind", "{why}", {"why": unknown("", kind, legal)})
    return known[kind].model_validate(value)


C = TypeVar("C", bound=Choice)


def one_of(base: type[C]) -> Any:
    """Return field type for "one choice of ``base``'s axis": accepts the choice, its kind,
    or a mapping with ``kind``.
    """
    # SerializeAsAny: otherwise only the fields of the base are written, and the knobs of the choice itself are lost.
    return Annotated[SerializeAsAny[base], BeforeValidator(functools.partial(resolve, base.axis))]  # type: ignore[valid-type, misc]
