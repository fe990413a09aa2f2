"""What was asked, read back from the folder of a race or a sweep that any version began."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from workbench.errors import RunError
from workbench.experiments.experiment_folder import ExperimentFolder
from workbench.runs.folder import read_object

Plan = TypeVar("Plan")


def read_plan(folder: ExperimentFolder, schema_version: int, built: Callable[[dict[str, Any]], Plan]) -> Plan:
    """The plan of an experiment's folder.

    Args:
        schema_version: the newest form that is known.
        built: makes the plan of its JSON.

    Raises:
        RunError: the file is damaged, or of a newer form than is known.
    """
    raw = read_object(folder.plan)
    found = raw.get("schema_version")
    if isinstance(found, int) and found > schema_version:
        raise RunError(
            f"{folder.noun} '{folder.id}' was begun by a newer workbench ({raw.get('version')}), whose {folder.plural} "
            "this one cannot read; upgrade it"
        )
    try:
        return built(raw)
    except (KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{folder.noun} '{folder.id}' cannot be read: {folder.plan} is damaged ({error})") from None


def known(kind: type, raw: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a dataclass that this version knows."""
    names = {field.name for field in fields(kind)}
    return {key: value for key, value in raw.items() if key in names}
