"""The items of benchmarks: from a folder of the user's, else from Hugging Face by name."""

from __future__ import annotations

import importlib.util
import json
import lzma
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.base.errors import DataError, typed_line
from workbench.base.files import EVALUATION_VARIABLE, open_text
from workbench.choices.data.local_path import hub_answers

_WAYS = f"in the Lab `{{name}} in FOLDER`, elsewhere --data DIR or ${EVALUATION_VARIABLE}"
"""Ways in which a user names a folder of files."""


@dataclass(frozen=True)
class Source:
    """Say where the items of a benchmark are found.

    Attributes:
        files: globs of its JSON lines, also compressed; the first that matches anything counts.
        hub: name of the dataset on the Hugging Face Hub; empty where it has none.
        config: of the dataset; ``*`` for all. split: of the dataset, and of items that name one.
        fields: that every item has, in one of these shapes.
    """

    files: tuple[str, ...]
    hub: str = ""
    config: str = ""
    split: str = "train"
    fields: tuple[frozenset[str], ...] = ()


def items(name: str, source: Source, folder: Path | None) -> list[dict[str, Any]]:
    """Return the items of a benchmark as objects; of items that name a split, those of the source's.

    Args:
        folder: looked through with all that is below it; None for ``$WORKBENCH_EVAL``, else the Hub.

    Raises:
        DataError: neither has them, or a file cannot be read or lacks a field.
    """
    given = folder or (Path(value) if (value := os.environ.get(EVALUATION_VARIABLE)) else None)
    if given is None:
        return [_checked(name, source, item, source.hub) for item in _from_hub(name, source)]
    paths = _paths(name, source, given.expanduser())
    found = [_checked(name, source, item, str(path)) for path in paths for item in _lines(path)]
    kept = [item for item in found if item.get("split", source.split) == source.split]
    if not kept:
        raise DataError(f"benchmark '{name}': no item of split '{source.split}' in {', '.join(map(str, paths))}")
    return kept


def _paths(name: str, source: Source, folder: Path) -> list[Path]:
    if not folder.is_dir():
        raise DataError(
            f"benchmark '{name}': '{folder}' is no folder; name the one with its file: {_WAYS.format(name=name)}"
        )
    for pattern in source.files:
        if found := sorted(path for path in folder.rglob(pattern) if path.is_file()):
            return found
    raise DataError(
        f"benchmark '{name}': no file {' or '.join(source.files)} in '{folder}' or below; name the folder that has it: "
        f"{_WAYS.format(name=name)}"
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with open_text(path) as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    found = json.loads(line)
                    if not isinstance(found, dict):
                        raise DataError(f"'{path}', line {number}: no JSON object")
                    yield found
    except (OSError, ValueError, EOFError, lzma.LZMAError) as error:
        raise DataError(f"'{path}' cannot be read as JSON lines: {typed_line(error)}") from None


def _checked(name: str, source: Source, item: Mapping[str, Any], where: str) -> dict[str, Any]:
    if any(fields <= item.keys() for fields in source.fields):
        return dict(item)
    asked = " or ".join(", ".join(sorted(fields)) for fields in source.fields)
    raise DataError(f"benchmark '{name}' needs the fields {asked}; an item of {where} has {', '.join(sorted(item))}")


def _from_hub(name: str, source: Source) -> Iterator[dict[str, Any]]:
    way_out = f"name a folder that has {' or '.join(source.files)}: {_WAYS.format(name=name)}"
    if not source.hub:
        raise DataError(f"benchmark '{name}' is not on the Hugging Face Hub; {way_out}")
    if importlib.util.find_spec("datasets") is None:
        raise DataError(f"benchmark '{name}': {way_out}; or pip install 'workbench[hf]' to fetch it from the Hub")
    import datasets

    # datasets itself would try again for half a minute.
    if not datasets.config.HF_HUB_OFFLINE and not hub_answers(source.hub):
        raise DataError(
            f"benchmark '{name}': the Hugging Face Hub did not answer; {way_out}. HF_HUB_OFFLINE=1 takes what is cached"
        )
    try:
        configs: Sequence[str | None] = [source.config or None]
        if source.config == "*":
            configs = datasets.get_dataset_config_names(source.hub)
        for config in configs:
            yield from datasets.load_dataset(source.hub, config, split=source.split)
    # Of many kinds, from four libraries: no network, no such dataset, a dataset that changed.
    except Exception as error:
        raise DataError(
            f"benchmark '{name}': '{source.hub}' cannot be fetched from the Hugging Face Hub ({typed_line(error)}); "
            f"{way_out}"
        ) from None
