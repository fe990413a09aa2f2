"""Hugging Face datasets, streamed."""

from __future__ import annotations

from typing import Literal

from workbench.choices.choice import knob
from workbench.choices.data.data import Data


class HuggingFace(Data):
    """A Hugging Face dataset by name, streamed up to a number of documents."""

    kind: Literal["hugging_face"] = "hugging_face"
    name: str = knob(..., "dataset name on the Hub, or a local folder that datasets can load", min_length=1)
    config: str | None = knob(None, "configuration name of the dataset")
    split: str = knob("train", "split to stream")
    field: str = knob("text", "name of the text field")
    max_documents: int = knob(100_000, "documents to take from the stream", unit="documents", ge=10, scale="log")
