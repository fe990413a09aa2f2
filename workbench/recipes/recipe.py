"""The recipe: a composition of choices that is frozen, checked, saved as JSON and compared field by field."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

import workbench.choices  # noqa: F401  (registers every choice)
from workbench.base.assignments import assignments as read_assignments
from workbench.base.assignments import read_fields
from workbench.base.errors import RecipeError
from workbench.base.fields import as_typed, by_axis, differences, flatten
from workbench.base.files import write_bytes
from workbench.base.text import aligned, many, plain
from workbench.choices.architectures.architecture import Architecture
from workbench.choices.choice import Problem, knob, known_fields, one_of
from workbench.choices.data.data import Data
from workbench.choices.depth.plan import Depth
from workbench.choices.edits import edit, unreadable_value
from workbench.choices.execution.engine import Engine
from workbench.choices.execution.execution import Execution
from workbench.choices.objectives.objective import Objective
from workbench.choices.optimizers.optimizer import OptimizerChoice
from workbench.choices.progress import Budget, parse_budget
from workbench.recipes.recipe_hash import as_before, recipe_hash

AXES = ("data", "objective", "architecture", "depth", "optimizer", "execution")
SCHEMA_VERSION = 1
_LONGEST_VALUE = 300
_LENGTHS = {"too_short": "item", "too_long": "item", "string_too_short": "character", "string_too_long": "character"}
_PLAIN = {
    "string_type": "must be text", "tuple_type": "must be a list", "bool_type": "must be true or false",
    "bool_parsing": "must be true or false", "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
}  # fmt: skip


class Differences(dict[str, tuple[Any, Any]]):
    """The differences between two recipes, ``{path: (here, there)}``; shown as a table in a notebook."""

    def __str__(self) -> str:
        rows = ((path, *(plain(_shown(value), _LONGEST_VALUE) for value in values)) for path, values in self.items())
        return aligned([("knob", "here", "there"), *rows]) if self else "no difference"

    def _repr_html_(self) -> str:
        if not self:
            return "<em>no difference</em>"
        body = "".join(_row("td", (path, *map(_shown, values))) for path, values in self.items())
        return f"<table><thead>{_row('th', ('knob', 'here', 'there'))}</thead><tbody>{body}</tbody></table>"


def _row(tag: str, texts: Iterable[str]) -> str:
    # Escaped: a name or a path of somebody's recipe must not become markup of this notebook.
    cells = (f"<{tag} style='text-align:left'>{escape(text)}</{tag}>" for text in texts)
    return f"<tr>{''.join(cells)}</tr>"


def _shown(value: Any) -> str:
    """Return a value of a field; a dash where one recipe has no such field."""
    return "-" if value is None else as_typed(value)


class Recipe(BaseModel):
    """Everything that determines a run: two recipes with the same hash train the same way.

    Raises:
        RecipeError: an unknown choice or knob, a value out of bounds, or a combination that cannot be trained;
            the message names every offending value, the legal ones and what to do.

    Example:
        >>> from workbench import presets
        >>> recipe = presets.bert_tiny().with_(depth={"kind": "progressive_drop", "theta": 0.5})
        >>> recipe.depth.theta
        0.5
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True)
    schema_version: Literal[1] = 1
    name: str = knob("recipe", "name of the run in lists and plots", min_length=1, max_length=80)
    notes: str = knob("", "free text", max_length=10_000)
    data: one_of(Data) = knob("embedded", "text, tokenizer and shape of a batch")  # type: ignore[valid-type]
    objective: one_of(Objective) = knob("masked", "what the model learns to predict")  # type: ignore[valid-type]
    architecture: one_of(Architecture) = knob("pre_ln", "the model")  # type: ignore[valid-type]
    depth: one_of(Depth) = knob("full", "which layers run, train and exist")  # type: ignore[valid-type]
    optimizer: one_of(OptimizerChoice) = knob("adamw", "how weights move")  # type: ignore[valid-type]
    execution: one_of(Execution) = knob("native", "how the mathematics is carried out")  # type: ignore[valid-type]
    budget: Budget = knob(help="what the run may spend", default_factory=Budget)
    seed: int = knob(0, "seed of initialisation, data order, masks and layer dropping", ge=0, lt=2**31)

    def __init__(self, /, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            # from None: pydantic's text speaks of its internals, and ours replaces it wholly.
            raise RecipeError("\n".join(map(str, _problems(error)))) from None

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, value: Any) -> Any:
        # Before anything reads the values: these break what would report them.
        if unreadable := unreadable_value(value):
            raise ValueError(unreadable)
        return known_fields(cls, value)

    @model_validator(mode="after")
    def _combination(self) -> Recipe:
        if found := self.problems():
            raise ValueError("\n".join(map(str, found)))
        return self

    def problems(self) -> list[Problem]:
        """Return combinations that cannot be trained; empty for every recipe that exists."""
        return [problem for axis in AXES for problem in getattr(self, axis).problems(self)]

    @classmethod
    def check(cls, fields: Mapping[str, Any]) -> list[Problem]:
        """Return problems with ``fields``, by path, without raising: what a form shows beside its knobs."""
        try:
            cls.model_validate(dict(fields))
        except ValidationError as error:
            return _problems(error)
        except RecipeError as error:
            return [Problem(*_split(line)) for line in str(error).splitlines()]
        return []

    def __str__(self) -> str:
        lines = (f"  {axis:<12}  {' '.join(filter(None, said))}" for axis, *said in self._rows())
        return "\n".join([plain(self.name), *lines])

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))

    def _repr_html_(self) -> str:
        body = "".join(_row("td", row) for row in self._rows())
        head = f"<thead>{_row('th', ('axis', 'choice', 'knobs'))}</thead>"
        return f"<p><strong>Recipe {escape(plain(self.name))}</strong></p><table>{head}<tbody>{body}</tbody></table>"

    def _rows(self) -> list[tuple[str, str, str]]:
        fields = self.to_dict()
        return by_axis(fields, flatten(fields), lambda value: plain(as_typed(value), _LONGEST_VALUE))

    def with_(self, /, **changes: Any) -> Recipe:
        """Return a recipe with some fields changed.

        Args:
            **changes: by axis or field. A mapping edits the current choice; a string names a kind (``depth="full"``)
                or a budget (``"200 steps"``); a choice replaces the current one entirely; a key may be a dotted path
                (``**{"optimizer.lr": 1e-3}``). A different kind starts from its defaults and keeps what all kinds of
                the axis share: a different source of text keeps tokenizer, rows and batch.

        Raises:
            RecipeError: as for the constructor.
        """
        return self.edited(changes.items())

    def with_assignments(self, assignments: Iterable[str] | Mapping[str, Any]) -> Recipe:
        """Return a recipe changed by ``PATH=VALUE`` strings, as in the CLI's ``--set`` and the notebooks, all at once.

        Args:
            assignments: for example ``optimizer.lr=1e-3`` or ``depth=progressive_drop``; values are read as JSON or,
                failing that, as plain text. Their order does not matter. One string of them, or a mapping, as well.

        Raises:
            RecipeError: no ``=``, an unknown path, or a value that does not fit.
        """
        return self.edited(read_assignments(assignments))

    def edited(self, changes: Iterable[tuple[str, Any]]) -> Recipe:
        """Return :meth:`with_` from pairs of path and value; if a knob occurs twice, the later value counts."""
        # Through plain data and the constructor: an edited recipe is checked like a new one.
        fields = self.to_dict()
        edit(Recipe, fields, [(path, _amount(value) if path == "budget" else value) for path, value in changes])
        return Recipe(**fields)

    def engine(self) -> Engine:
        """Return the engine that executes this recipe.

        Raises:
            RecipeError: the device is not there, or cannot do what is asked.
        """
        engine: Engine = self.execution.engine(self)
        return engine

    def problems_here(self) -> list[Problem]:
        """Return why this machine cannot train the recipe; empty if it can. Creates no CUDA context.

        Separate from :meth:`problems`, so that recipes from other machines can still be opened.
        """
        if found := list(self.execution.problems_here()):
            return found
        try:
            self.engine()
        except RecipeError as error:
            path, message = _split(str(error))
            return [Problem(path or "execution", message)]
        return []

    def check_here(self) -> None:
        """Refuse a recipe that this machine cannot train.

        Raises:
            RecipeError: the device is not there, or cannot do what is asked, or has fewer cores than threads are asked.
        """
        _refuse(self.problems_here())

    def check_together(self, processes: int) -> None:
        """Refuse a recipe that so many processes cannot train together.

        Raises:
            RecipeError: a choice that cannot, or too few rows.
        """
        _refuse(each for axis in AXES for each in getattr(self, axis).problems_together(self, processes))

    def check_text_here(self) -> None:
        """Refuse a recipe whose files of text or tokenizer this machine lacks.

        Apart from :meth:`check_here`: a trainer that goes on reads what it has prepared.

        Raises:
            RecipeError: a path that is not there, or holds nothing that can be read.
        """
        _refuse(self.data.problems_here())

    def located(self) -> Recipe:
        """Return the recipe with absolute paths, which trains from every working folder of this machine."""
        axes = {axis: getattr(self, axis).located() for axis in AXES}
        found = {f"{axis}.{path}": value for axis, paths in axes.items() for path, value in paths.items()}
        return self.edited(found.items()) if found else self

    @property
    def objects(self) -> list[str]:
        """The parts that stand for the user's own objects, as in runs of ``workbench.accelerate``."""
        return [choice.placeholder for axis in AXES if (choice := getattr(self, axis)).placeholder]

    def check_whole(self, run: str = "RUN") -> None:
        """Refuse a recipe that is not enough by itself to launch, to edit or to build a model from.

        Args:
            run: id of the run that it is of, for the message.

        Raises:
            RecipeError: it has :attr:`objects`.
        """
        if self.objects:
            raise RecipeError(
                f"recipe '{self.name}' is not whole: {', '.join(self.objects)} of its run were objects of a Python "
                f"program; with a model of that class, `workbench.Run({run!r}).load_into(model)` loads the weights, "
                "and `model.save_pretrained(FOLDER)` writes one of transformers; unless it has finished, "
                f"`workbench.accelerate(model, loader, resume={run!r})` goes on"
            )

    def diff(self, other: Recipe) -> Differences:
        """Return ``{path: (here, there)}`` for every field that differs; ``None`` if one side lacks the field.

        Raises:
            RecipeError: ``other`` is no recipe.
        """
        check_recipe(other, "diff")
        found = differences([flatten(self.to_dict()), flatten(other.to_dict())])
        return Differences({path: (here, there) for path, (here, there) in sorted(found.items())})

    @property
    def hash(self) -> str:
        """Ten hexadecimal digits that identify the training: a hash of every field except name and notes."""
        return recipe_hash(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return a plain, JSON-serialisable dictionary; ``Recipe(**d)`` restores the recipe."""
        return self.model_dump(mode="json")

    def to_json(self) -> str:
        """Return the dictionary as indented JSON text."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """Return the recipe of a JSON text.

        Raises:
            RecipeError: not JSON, not a recipe, or written by a newer version.
        """
        return cls._of(read_fields(text))

    @classmethod
    def _of(cls, fields: dict[str, Any]) -> Recipe:
        version = fields.get("schema_version", SCHEMA_VERSION)
        # First of all: the fields that a newer version added would be called mistyped.
        if isinstance(version, int) and version > SCHEMA_VERSION:
            raise RecipeError(
                f"schema_version: {version} was written by a newer workbench, this one reads {SCHEMA_VERSION}; "
                "upgrade it"
            )
        return cls(**as_before(fields))

    def save(self, path: str | Path) -> Path:
        """Write the recipe as JSON, whole or not at all; returns the path.

        Raises:
            OSError: the folder is missing or the disk is full; no partial file is left behind.
        """
        path = Path(path)
        write_bytes(path, (self.to_json() + "\n").encode())
        return path

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """Read a recipe written by :meth:`save`.

        Raises:
            RecipeError: no such file, or not a recipe.
        """
        try:
            with open(path, "rb", opener=_without_waiting) as file:
                text = file.read().decode()
        except IsADirectoryError:
            raise RecipeError(f"recipe file '{path}' is a folder; give a file in it: a run's is recipe.json") from None
        except (OSError, UnicodeDecodeError) as error:
            raise RecipeError(f"recipe file '{path}' cannot be read: {error}") from None
        return cls._of(read_fields(text, f"recipe file '{path}'"))


def _without_waiting(path: str, flags: int) -> int:
    """Open a file; a pipe (``--recipe <(...)``) is read to its end, one that nobody writes to is empty."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor


def _amount(budget: Any) -> Any:
    """Return ``"400 steps"`` as the edit that it is: of the amount, not of how often to evaluate or to save."""
    try:
        return parse_budget(budget) if isinstance(budget, str) else budget
    except ValueError:
        return budget  # the budget's own check says what is wrong with it


def _problems(error: ValidationError, prefix: str = "") -> list[Problem]:
    """Return every leaf of a pydantic error as (path, teaching message); errors of nested choices are unfolded."""
    found: list[Problem] = []
    for item in error.errors():
        # A tagged union leaves type names such as "float" in the location; they are no part of a knob's path.
        parts = [str(part) for part in item["loc"] if not str(part).startswith("function-")]
        path = ".".join(([prefix] if prefix else []) + parts)
        inner = item.get("ctx", {}).get("error")
        if isinstance(inner, ValidationError):
            found += _problems(inner, path)
        elif item["type"] in ("kind", "knob"):
            name = "kind" if item["type"] == "kind" else item["ctx"]["name"]
            found.append(Problem(f"{path}.{name}".lstrip("."), item["ctx"]["why"]))
        elif inner is not None and not path:
            found += [Problem(*_split(line)) for line in str(inner).splitlines()]
        elif inner is not None:
            found.append(Problem(path, f"{inner}"))
        # Of a list whose entries are wrong, pydantic counts none: what is wrong with them is told.
        elif not (item["type"] == "too_short" and item["input"]):
            found.append(Problem(path, _worded(item["type"], item["msg"], item.get("ctx", {}), item.get("input"))))
    return found


def _worded(kind: str, message: str, limits: Mapping[str, Any], given: Any) -> str:
    """Say what pydantic has against a value, in words that need no Python."""
    if kind == "missing":
        return "must be given"
    if kind in ("too_short", "string_too_short") and not given:
        least = limits["min_length"]
        return f"must not be empty: give at least {many(least, _LENGTHS[kind])}"
    if kind in ("too_long", "string_too_long"):
        return f"must have at most {limits['max_length']:,} {_LENGTHS[kind]}s, got {len(given):,}"
    why = _PLAIN.get(kind) or message.replace("Input should", "must").partition(", unable to parse")[0]
    return f"{why}, got {given!r:.200}"


def _refuse(problems: Iterable[Problem]) -> None:
    if found := list(problems):
        raise RecipeError("\n".join(map(str, found)))


def _split(line: str) -> tuple[str, str]:
    path, separator, message = line.partition(": ")
    return (path, message) if separator and " " not in path else ("", line)


def check_recipe(value: object, what: str) -> None:
    """Refuse what is no recipe, such as the name of one; ``what`` is what it was given to.

    Raises:
        RecipeError: it is none.
    """
    if not isinstance(value, Recipe):
        raise RecipeError(f"{what} takes a Recipe, got {value!r:.60}; a preset by name: wb.presets.get('fast')")
