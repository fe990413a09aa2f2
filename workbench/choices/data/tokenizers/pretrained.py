"""A tokenizer by name or path."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from workbench.base.errors import DataError, first_line
from workbench.choices.choice import Problem, knob
from workbench.choices.data.local_path import hub_answers, local_path
from workbench.choices.data.tokenizers.sentencepiece_model import read_sentencepiece
from workbench.choices.data.tokenizers.tokenizer import TokenizerChoice
from workbench.choices.data.tokenizers.vocabulary import complete, declared_tokens

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_OLDER_FILES = ("vocab.*", "merges.txt", "*.model", "*token*.json")
"""Files from which transformers makes a tokenizer without a tokenizer.json."""
_WAY_OUT = (
    "give a folder with a tokenizer.json, the file itself, a SentencePiece .model or a name on the Hub, or use the "
    "tokenizer 'trained', which needs neither"
)


class PretrainedTokenizer(TokenizerChoice):
    """A tokenizer by Hugging Face name, or from a local folder, tokenizer.json or SentencePiece model."""

    kind: Literal["pretrained"] = "pretrained"
    name: str = knob(
        ..., "Hugging Face name, folder with a tokenizer.json or a .model, or the file itself", min_length=1
    )

    def problems_here(self) -> Iterator[Problem]:
        """Refuse a local path that leads to no tokenizer: only the Hub knows which names there are."""
        path = local_path(self.name)
        if path is not None and (why := _not_a_tokenizer(path)):
            yield Problem("name", f"'{self.name}' {why}; {_WAY_OUT}")

    def located(self) -> dict[str, Any]:
        """Return the path that the name is, if it is one."""
        path = local_path(self.name)
        return {} if path is None else {"name": str(path)}

    def key(self, sources: dict[str, Any]) -> dict[str, Any]:
        """Return the name, and for local files their content; the corpus plays no part."""
        local, path = self._local_file(), Path(self.name).expanduser()
        older = {each for form in _OLDER_FILES for each in path.glob(form) if each.is_file()}
        files = [local] if local else sorted(older)
        digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest() if files else None
        declared = self._declared_beside()
        return {**self.model_dump(mode="json"), "sha256": digest} | ({"declared": declared} if declared else {})

    def make(self, documents: Iterator[str], target: Path) -> dict[str, str]:
        """Load the tokenizer and write it, without stored truncation and padding.

        Returns:
            the special tokens that it declares, by transformers' field.

        Raises:
            DataError: no such file or name, no network, or a tokenizer that has no fast (Rust) form.
        """
        tokenizer, declared = self._load()
        # Stored settings of the source would cut or pad documents silently.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        target.write_text(tokenizer.to_str(), encoding="utf-8")
        return declared

    def notices(self) -> Iterator[Problem]:
        """Yield the special tokens that a local tokenizer lacks, which preparation adds."""
        if (local := self._local_file()) is None:
            return
        with suppress(DataError):  # preparation says so
            if added := _added(local, local.stat().st_mtime_ns, tuple(self._declared_beside().items())):
                yield Problem("name", f"'{self.name}' has no {', '.join(added)}: added, with new ids")

    def _declared_beside(self) -> dict[str, str]:
        """Return the special tokens that the files beside a local ``tokenizer.json`` declare."""
        found: dict[str, str] = {}
        local = self._local_file()
        for name in ("special_tokens_map.json", "tokenizer_config.json"):
            if local is None or local.name != "tokenizer.json" or not (file := local.with_name(name)).is_file():
                continue
            try:
                settings = json.loads(file.read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                raise DataError(f"tokenizer file '{file}' cannot be read: {error}; repair it or remove it") from None
            found |= declared_tokens(settings if isinstance(settings, dict) else {})
        return found

    def _local_file(self) -> Path | None:
        path = Path(self.name).expanduser()
        if not path.is_dir():
            return path if path.is_file() else None
        if (path / "tokenizer.json").is_file():
            return path / "tokenizer.json"
        models = list(path.glob("*.model"))
        # Where transformers wrote settings, it knows which of its classes shifts the numbers of the model.
        alone = len(models) == 1 and not any(path.glob("*config.json"))
        return models[0] if alone else None

    def _load(self) -> tuple[Tokenizer, dict[str, str]]:
        local = self._local_file()
        for problem in self.problems_here():
            raise DataError(f"tokenizer {problem.message}")
        if local is None:
            return self._load_by_name()
        tokenizer, declared = _read(local)
        return tokenizer, declared | self._declared_beside()

    def _load_by_name(self) -> tuple[Tokenizer, dict[str, str]]:
        from transformers import AutoTokenizer

        # transformers would try again for most of a minute, and then look into its cache as we do.
        offline = not hub_answers(self.name)
        try:
            # trust_remote_code: text files of strangers are read, their programs are not run.
            loaded = AutoTokenizer.from_pretrained(self.name, trust_remote_code=False, local_files_only=offline)
        except (OSError, ValueError, ImportError) as error:
            # What it raises for files that are of no tokenizer ends in a list of nothing.
            why = "what it holds is no tokenizer" if isinstance(error, ValueError) else first_line(error)
            models = sorted(Path(self.name).expanduser().glob("*.model"))
            itself = (
                f"name '{models[0]}' itself, for its own ids without those that a model's class adds; "
                if models
                else ""
            )
            raise DataError(
                f"tokenizer '{self.name}' is no local tokenizer.json, no folder that holds one, and cannot be had by "
                f"name: {why}; {itself}{_WAY_OUT}"
            ) from None
        backend = getattr(loaded, "backend_tokenizer", None)
        if backend is None:
            raise DataError(
                f"tokenizer '{self.name}' has no fast form (tokenizer.json); legal: any fast tokenizer, or 'trained'"
            )
        return backend, declared_tokens(loaded.special_tokens_map)


def _read(file: Path) -> tuple[Tokenizer, dict[str, str]]:
    """Return the tokenizer of a file, and the special tokens that the file itself names."""
    from tokenizers import Tokenizer

    if file.suffix == ".model":
        return read_sentencepiece(file)
    try:
        return Tokenizer.from_file(str(file)), {}
    except Exception as error:  # the library raises bare Exception for every malformed file
        raise DataError(f"tokenizer file '{file}' is not a tokenizer.json: {error}") from None


@functools.lru_cache(maxsize=8)
def _added(file: Path, changed: int, declared: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    """Return the special tokens that preparation adds; a form asks at every key."""
    tokenizer, named = _read(file)
    return tuple(complete(tokenizer, named | dict(declared)))


def _not_a_tokenizer(path: Path) -> str:
    """Return why a local path leads to no tokenizer; empty if it may: transformers reads files of older kinds, too."""
    if path.is_file():
        return ""
    if not path.is_dir():
        return "does not exist"
    if (path / "tokenizer.json").is_file() or any(any(path.glob(form)) for form in _OLDER_FILES):
        return ""
    return "is a folder without a tokenizer.json"
