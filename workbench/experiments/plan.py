"""What was asked of an experiment, frozen before its first run, as its folder keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, Self

from workbench.errors import RunError
from workbench.experiments.experiment_folder import ExperimentFolder
from workbench.runs.folder import read_object

SCHEMA_VERSION = 1
"""The newest form of a plan's file that is known."""
Score = Literal["nats", "bits_per_byte"]


@dataclass(frozen=True, repr=False, kw_only=True)
class Plan:
    """What every plan holds; as JSON and back.

    Attributes:
        seeds: that each recipe trains with. score: what is compared.
        warnings: what was said before it began.
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
        """JSON-able; :meth:`read` reads it back."""
        return asdict(self)

    @classmethod
    def read(cls, folder: ExperimentFolder) -> Self:
        """The plan of an experiment's folder, also of one that another version began.

        Raises:
            RunError: the file is damaged, or of a newer form than this version knows.
        """
        raw = read_object(folder.plan)
        found = raw.get("schema_version")
        if isinstance(found, int) and found > SCHEMA_VERSION:
            raise RunError(
                f"{folder.noun} '{folder.id}' was begun by a newer workbench ({raw.get('version')}), whose "
                f"{folder.plural} this one cannot read; upgrade it"
            )
        try:
            several = {each.name: tuple(raw[each.name]) for each in fields(cls) if str(each.type).startswith("tuple")}
            return cls(**{**known(cls, raw), **several, **cls._parts(raw)})
        except (KeyError, TypeError, AttributeError) as error:
            raise RunError(f"{folder.noun} '{folder.id}' cannot be read: {folder.plan} is damaged ({error})") from None

    @classmethod
    def _parts(cls, raw: dict[str, Any]) -> dict[str, Any]:
        """Fields that are dataclasses themselves, of their JSON."""
        raise NotImplementedError


def known(kind: type, raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass that this version knows."""
    names = {field.name for field in fields(kind)}
    return {key: value for key, value in raw.items() if key in names}
