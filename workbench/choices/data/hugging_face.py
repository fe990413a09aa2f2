"""Hugging Face datasets, streamed."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from workbench.base.errors import DataError, typed_line, unknown
from workbench.choices.choice import Problem, knob
from workbench.choices.data.cache import cached_documents
from workbench.choices.data.data import Say, Sourced
from workbench.choices.data.files import listing
from workbench.choices.data.local_path import ANSWER_SECONDS, local_path
from workbench.choices.data.reading import text_of
from workbench.choices.data.stream import Streamed

_WAY_OUT = "use text that is on this machine instead: data 'files' with data.paths, or data 'embedded'"


class HuggingFace(Streamed):
    """A Hugging Face dataset by name, streamed up to a maximum number of documents."""

    kind: Literal["hugging_face"] = "hugging_face"
    name: str = knob(..., "dataset name on the Hub, or a local folder that datasets can load", min_length=1)
    config: str | None = knob(None, "configuration name of the dataset")
    revision: str | None = knob(None, "commit, tag or branch of the dataset; empty: its newest")
    split: str = knob("train", "split to stream", min_length=1)
    field: str = knob("text", "name of the text field", min_length=1)
    max_documents: int = knob(
        100_000, "documents to take where the text is prepared whole (data.stream 0)", unit="documents", ge=10,
        scale="log",
    )  # fmt: skip

    def documents(self) -> Iterator[str]:
        """Yield the first ``max_documents`` documents of the dataset, of a stream its start; fetched once, then cached.

        Raises:
            DataError: the package datasets is missing, no network, no such dataset, split or field.
        """
        return (text for _, text in self._fetched(lambda line: None))

    def collect(self, say: Say) -> None:
        """Fetch the documents unless that was done before."""
        say(f"streaming at most {self._most:,} documents of the dataset '{self.name}'")
        self._fetched(say)

    def problems_here(self) -> Iterator[Problem]:
        """Refuse a folder that is not there, or holds no file: only the Hub knows which names there are."""
        yield from super().problems_here()
        folder = local_path(self.name)
        if folder is not None and not (folder.is_dir() and any(each.is_file() for each in folder.rglob("*"))):
            why = "is a file" if folder.is_file() else "holds no file" if folder.is_dir() else "does not exist"
            yield Problem("data.name", f"'{self.name}' {why}; give a folder of a dataset, or a name on the Hub")

    def located(self) -> dict[str, Any]:
        """Return the tokenizer's path, and the folder's where the name is one."""
        path = local_path(self.name)
        return {**super().located(), **({} if path is None else {"name": str(path)})}

    def sources(self) -> dict[str, Any]:
        """Return what was asked of the Hub; for a local folder also its files, sizes and times of change.

        A dataset without ``revision`` is fetched once: what was fetched first stays until the cache is cleared.
        """
        own = set(HuggingFace.model_fields) - set(Streamed.model_fields) - {"kind"}
        fields = self.model_dump(mode="json", include=own) | {"max_documents": self._most}
        if self.stream:
            fields |= {"stream": self.stream}
        folder = Path(self.name).expanduser()
        if not folder.is_dir():
            return fields
        return {**fields, "local": listing(sorted(path for path in folder.rglob("*") if path.is_file()))}

    def _fetched(self, say: Say) -> Iterator[Sourced]:
        first = (((), text) for text in islice(self.open_stream(0), self._most))
        return cached_documents("hugging_face", self.sources(), lambda: first, say)

    @property
    def _most(self) -> int:
        return self.stream or self.max_documents

    def open_stream(self, first: int) -> Iterator[str]:
        """See :meth:`Streamed.open_stream`; the dataset skips what stands before."""
        if importlib.util.find_spec("datasets") is None:
            raise DataError(
                "data 'hugging_face' needs the package datasets; install it with: pip install 'workbench[hf]'"
            )
        dataset = self._open()
        try:
            for number, record in enumerate(dataset.skip(first) if first else dataset, start=first + 1):
                yield self._text(record, number)
        except DataError:
            raise
        except Exception as error:  # whatever a reader of one of a dozen formats, or the network, raises
            raise DataError(
                f"dataset '{self.name}' broke off while it was read: {typed_line(error)}; {_WAY_OUT}"
            ) from error

    def _open(self) -> Any:
        """Return the split as an iterable of records."""
        import datasets

        folder = Path(self.name).expanduser()
        if not folder.is_dir() and not datasets.config.HF_HUB_OFFLINE:
            self._ask_hub()
        try:
            if (folder / "dataset_info.json").is_file() or (folder / "dataset_dict.json").is_file():
                loaded = datasets.load_from_disk(str(folder))
                if isinstance(loaded, dict) and self.split not in loaded:
                    raise DataError(unknown("data.split", self.split, loaded))
                return loaded[self.split] if isinstance(loaded, dict) else loaded
            return datasets.load_dataset(
                str(folder) if folder.is_dir() else self.name,
                self.config,
                split=self.split,
                streaming=True,
                revision=self.revision,
            )
        except DataError:
            raise
        except Exception as error:  # the library raises two dozen types for "not there"
            raise DataError(
                f"dataset '{self.name}' (config {self.config!r}, split '{self.split}') cannot be opened: "
                f"{typed_line(error)}; {_WAY_OUT}"
            ) from error

    def _ask_hub(self) -> None:
        """Find out in bounded time whether the Hub answers and knows the dataset."""
        from huggingface_hub import HfApi
        from huggingface_hub.errors import GatedRepoError, HFValidationError, RepositoryNotFoundError

        try:
            HfApi().dataset_info(self.name, revision=self.revision, timeout=ANSWER_SECONDS)
        except GatedRepoError as error:
            raise DataError(
                f"dataset '{self.name}' is gated; ask for access and log in: {typed_line(error)}"
            ) from error
        except (RepositoryNotFoundError, HFValidationError) as error:
            raise DataError(
                f"dataset '{self.name}' is neither a local folder here ('{os.getcwd()}') nor a public dataset on the "
                f"Hub: {typed_line(error)}; {_WAY_OUT}"
            ) from error
        except Exception as error:  # no route, no name service, a proxy's refusal, a timeout: each of its own type
            raise DataError(
                f"dataset '{self.name}' is no local folder, and the Hub did not answer ({typed_line(error)}); "
                f"{_WAY_OUT}"
            ) from error

    def _text(self, record: dict[str, Any], number: int) -> str:
        return text_of(record, self.field, f"dataset '{self.name}' record {number:,}")
