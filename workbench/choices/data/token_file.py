"""Tokens that another program wrote."""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from pydantic import model_validator

from workbench.base.errors import DataError
from workbench.choices.choice import Problem, knob, one_of
from workbench.choices.data.data import Data
from workbench.choices.data.files import listing
from workbench.choices.data.token_reading import ENDINGS, place_of, separator_of, token_documents
from workbench.choices.data.tokenizers.pretrained import PretrainedTokenizer
from workbench.choices.data.tokenizers.tokenizer import TokenizerChoice

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class TokenFile(Data):
    """Token files: nanoGPT's .bin, those with llm.c's header, and .npy; no text is tokenised."""

    kind: Literal["token_file"] = "token_file"
    decodes: ClassVar[bool] = True
    tokenizer: one_of(TokenizerChoice) = knob(  # type: ignore[valid-type]
        help="the tokenizer that wrote the files", default_factory=lambda: PretrainedTokenizer(name="gpt2")
    )
    paths: tuple[str, ...] = knob(..., "files, folders or glob patterns of .bin and .npy", min_length=1)
    heldout_paths: tuple[str, ...] = knob((), "held-out files (val.bin); empty: a share of the documents")
    dtype: Literal["uint16", "uint32"] = knob("uint16", "of the ids in a .bin without a header")
    end_of_text: int | None = knob(
        None, "id between documents; empty: the tokenizer's token for it that stands in the file", ge=0
    )
    document_tokens: int = knob(
        2048, "a file in which no document ends is cut into documents of so many", unit="tokens", ge=8, le=1 << 20
    )

    @model_validator(mode="after")
    def _tokens_are_made(self) -> TokenFile:
        if self.tokenizer.kind == "trained":
            raise ValueError(
                "tokenizer 'trained' would learn other tokens than the files hold; give the one that wrote them: "
                'data.tokenizer={"kind": "pretrained", "name": PATH}'
            )
        if self.steps:
            raise ValueError("steps change text, and token files hold none; give the text as 'files', or no steps")
        return self

    def reader(self, tokenizer: Tokenizer, added: Sequence[str] = ()) -> Reader:
        """Return what reads the documents as ids, (N,) each; those of ``added`` tokens are no ids of the files."""
        return Reader(self, tokenizer, added)

    def documents(self) -> Iterator[str]:
        """Yield documents as text: decoded, for whoever reads text; training reads the ids.

        Raises:
            DataError: a file that is missing, damaged or of another vocabulary; a tokenizer that cannot be had.
        """
        return self._decoded(heldout=False)

    def heldout_documents(self) -> Iterator[str] | None:
        """Yield documents of ``heldout_paths`` as text, or None when there are none."""
        return self._decoded(heldout=True) if self.heldout_paths else None

    def _decoded(self, *, heldout: bool) -> Iterator[str]:
        from tokenizers import Tokenizer

        with tempfile.TemporaryDirectory() as folder:
            target = Path(folder) / "tokenizer.json"
            self.tokenizer.make(iter(()), target)
            tokenizer = Tokenizer.from_file(str(target))
        for ids_N in self.reader(tokenizer)(heldout=heldout):
            yield tokenizer.decode(ids_N.tolist(), skip_special_tokens=False)

    def sources(self) -> dict[str, Any]:
        """Return number, bytes, names and a digest of the files; reads none of them."""
        heldout = _files(self.heldout_paths, "data.heldout_paths") if self.heldout_paths else []
        fields = self.model_dump(mode="json", include={"dtype", "end_of_text", "document_tokens"})
        return {"train": listing(self.files()), "heldout": listing(heldout), **fields}

    def files(self) -> list[Path]:
        """Return the training files; those that are held out are left out.

        Raises:
            DataError: a path that is missing or holds no token file.
        """
        held = set(_files(self.heldout_paths, "data.heldout_paths")) if self.heldout_paths else set()
        files = [path for path in _files(self.paths, "data.paths") if path not in held]
        if not files:
            raise DataError("every file of data.paths is also in data.heldout_paths; nothing is left to train on")
        return files

    def problems_here(self) -> Iterator[Problem]:
        """Yield files that are not there, are cut off, or hold no row of ids."""
        yield from super().problems_here()
        for name in ("paths", "heldout_paths"):
            try:
                for path in _files(getattr(self, name), f"data.{name}")[:16]:
                    place_of(path, self.dtype)
            except DataError as error:
                yield Problem(f"data.{name}", str(error).removeprefix(f"data.{name}: "))

    def located(self) -> dict[str, Any]:
        """Return the tokenizer's path and those of the files, patterns among them."""
        given = {"paths": self.paths, "heldout_paths": self.heldout_paths}
        return super().located() | {
            name: [str(Path(path).expanduser().absolute()) for path in paths] for name, paths in given.items()
        }


class Reader:
    """Reads the documents of token files with the ids of a tokenizer.

    Attributes:
        separator: id between documents; None where no document ends.
    """

    def __init__(self, data: TokenFile, tokenizer: Tokenizer, added: Sequence[str]) -> None:
        names = tokenizer.get_vocab(with_added_tokens=True).items()
        self._data, self._ids = data, max(number for name, number in names if name not in added) + 1
        first = place_of(data.files()[0], data.dtype)
        self.separator = separator_of(first, tokenizer) if data.end_of_text is None else data.end_of_text

    def __call__(self, *, heldout: bool) -> Iterator[np.ndarray]:
        """Yield every document of one kind of files, int64 (N,)."""
        data = self._data
        files = _files(data.heldout_paths, "data.heldout_paths") if heldout else data.files()
        places = [place_of(path, data.dtype) for path in files]
        return token_documents(places, self._ids, self.separator, data.document_tokens)


def _files(paths: tuple[str, ...], knob_name: str) -> list[Path]:
    """Return the absolute paths of every token file, sorted, each once."""
    found: set[Path] = set()
    for text in paths:
        path = Path(text).expanduser()
        matches = [path] if path.is_file() else path.rglob("*") if path.is_dir() else map(
            Path, glob.iglob(str(path), recursive=True))  # fmt: skip
        files = {match.absolute() for match in matches if match.suffix.lower() in ENDINGS and match.is_file()}
        if not files:
            why = "no such file or folder" if not glob.has_magic(text) and not path.exists() else "no token file in"
            raise DataError(f"{knob_name}: {why} '{text}'; legal file names end in {', '.join(ENDINGS)}")
        found |= files
    return sorted(found)
