"""The plan of an experiment: frozen before its first run, kept in its folder as JSON."""

from __future__ import annotations

import importlib.metadata
import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from workbench.base.errors import RunError
from workbench.experiments.experiment_folder import ExperimentFolder
from workbench.store.folder import RunFolder, new_run_id, read_object, runs_root

if TYPE_CHECKING:
    from workbench.recipes.recipe import Recipe

SCHEMA_VERSION = 1
"""The newest form of a plan's file that is known."""
Score = Literal["nats", "bits_per_byte"]


@dataclass(frozen=True)
class Cost:
    """The forecast of an experiment on this machine.

    Attributes:
        seconds: wall time. core_hours: of all runs; 0 on a GPU.
    """

    runs: int
    seconds: float
    core_hours: float


@dataclass(frozen=True, repr=False, kw_only=True)
class Plan:
    """The fields of every plan; as JSON and back.

    Attributes:
        seeds: that each recipe trains with. score: of comparisons.
        warnings: said before it began.
        runs_dir, folder: the runs folder, and the working folder in which it began; absolute.
        version: of the package that began it.
    """

    id: str
    name: str
    seeds: tuple[int, ...]
    score: Score
    warnings: tuple[str, ...]
    runs_dir: str
    folder: str
    version: str
    schema_version: int = SCHEMA_VERSION

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON; :meth:`read` reads it back."""
        return asdict(self)

    @classmethod
    def read(cls, folder: ExperimentFolder) -> Self:
        """Read the plan of an experiment's folder, also of one that an older version began.

        Raises:
            RunError: the file is damaged, or of a newer form than this version knows.
        """
        raw = read_object(folder.plan)
        found = raw.get("schema_version")
        if isinstance(found, int) and found > SCHEMA_VERSION:
            raise RunError(f"{folder.noun} '{folder.id}' was begun by a newer workbench ({raw.get('version')}), whose "
                           f"{folder.plural} this one cannot read; upgrade it")  # fmt: skip
        try:
            several = {each.name: tuple(raw[each.name]) for each in fields(cls) if str(each.type).startswith("tuple")}
            return cls(**{**known(cls, raw), **several, **cls._parts(raw)})
        except (KeyError, TypeError, AttributeError) as error:
            raise RunError(f"{folder.noun} '{folder.id}' cannot be read: {folder.plan} is damaged ({error})") from None

    @classmethod
    def _parts(cls, raw: dict[str, Any]) -> dict[str, Any]:
        """Read the fields that are dataclasses themselves."""
        raise NotImplementedError


class RunsPlan(Plan):
    """A plan whose runs follow from it; a job names one of them.

    Attributes:
        at_once: runs side by side.
    """

    at_once: int

    @abstractmethod
    def run_folder(self, job: Any) -> RunFolder:
        """Return the folder of a job's run. Its id follows from the plan, so that nothing is launched twice."""

    @abstractmethod
    def recipe_of(self, job: Any) -> Recipe:
        """Return the recipe of a job's run. (Imports torch, through the choices.)

        Raises:
            RecipeError: it cannot be trained here.
        """

    @abstractmethod
    def facts_of(self, job: Any) -> dict[str, Any]:
        """Return what events say of a job."""

    @abstractmethod
    def title_of(self, job: Any) -> str:
        """Return what notes of a job's run call it."""

    def launch_options(self, job: Any) -> dict[str, Any]:
        """Return what a launch of the job takes beside its recipe."""
        return {}


def begun(name: str, recipe_hash: str, runs_dir: str | Path | None) -> dict[str, Any]:
    """Return the fields of a plan that say where and with what it begins: a new id, both folders, the version."""
    places = {"runs_dir": str(runs_root(runs_dir)), "folder": os.getcwd()}
    return {"id": new_run_id(name, recipe_hash), **places, "version": version_here()}


def version_here() -> str:
    """Return the version of this package; empty for a source tree that is not installed."""
    try:
        return importlib.metadata.version("workbench")
    except importlib.metadata.PackageNotFoundError:
        return ""


def known(kind: type, raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a dataclass that this version knows."""
    names = {field.name for field in fields(kind)}
    return {key: value for key, value in raw.items() if key in names}
