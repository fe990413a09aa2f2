"""Local text, JSON lines and parquet files."""

from __future__ import annotations

from typing import Literal

from workbench.choices.choice import knob
from workbench.choices.data.data import Data


class Files(Data):
    """Text, jsonl (also .gz, .xz, .zst) and parquet files or folders of them."""

    kind: Literal["files"] = "files"
    paths: tuple[str, ...] = knob(..., "files, folders or glob patterns", min_length=1)
    field: str = knob("text", "name of the text field in JSON lines and parquet")
    heldout_paths: tuple[str, ...] = knob((), "held-out files; empty means a share of the documents")
