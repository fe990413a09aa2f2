"""The file of one learner in one lesson: what was predicted, what came of it, which questions were answered.

``<runs>/lessons/<lesson>/<learner>.json`` is replaced as a whole, so whoever reads it (a board) never sees half of one.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from workbench.base.errors import LessonError
from workbench.store.folder import write_json

FOLDER = "lessons"
SCHEMA = 1
Value = str | float
"""One of a question's options, or a number in its unit."""


class Prediction(BaseModel):
    """A prediction, and its outcome once that is known.

    Attributes:
        question, unit: as they were asked. value: an option or a number in ``unit``. made_at, outcome_at: Unix seconds.
        right: whether the option came true. error: of a number, in ``unit``: the prediction minus the outcome.
    """

    model_config = ConfigDict(frozen=True)

    question: str
    unit: str = ""
    value: Value
    made_at: float
    outcome: Value | None = None
    outcome_at: float | None = None
    right: bool | None = None
    error: float | None = None


class Check(BaseModel):
    """A question with a known answer.

    Attributes:
        tries: answers so far. right: whether the last one was.
    """

    model_config = ConfigDict(frozen=True)

    question: str
    tries: int = 0
    right: bool = False


class Record(BaseModel):
    """All of one learner in one lesson.

    Attributes:
        account: of the system or of JupyterHub that the learner works under: two people with one name differ in it.
        predictions, checks: by their keys, in the order in which they were answered.
    """

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    version: int = Field(SCHEMA, alias="schema")
    lesson: str
    learner: str
    account: str = ""
    predictions: dict[str, Prediction] = {}
    checks: dict[str, Check] = {}

    def write(self, path: Path) -> None:
        """Replace the file; folders that are missing are made as open to others as the runs folder is.

        Raises:
            LessonError: it cannot be written.
        """
        try:
            make_folder(path.parent)
            write_json(path, self.model_dump(by_alias=True))
        except OSError as error:
            raise LessonError(
                f"the answer could not be kept in {path} ({error.strerror}); give another folder: "
                f"wb.Lesson({self.lesson!r}, runs=...)"
            ) from None


def path_of(root: Path, lesson: str, learner: str) -> Path:
    """Return the file of a learner; letters that a file name cannot have are written as in a URL."""
    return root / FOLDER / lesson / f"{quote(learner, safe=' ')}.json"


def read(path: Path) -> Record | None:
    """Return what a file holds; None if there is none.

    Raises:
        LessonError: it is damaged, or was written by a newer version.
    """
    try:
        record = Record.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValidationError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is damaged"
        raise LessonError(f"{path} cannot be read: {why}; delete it to begin the lesson anew") from None
    if record.version > SCHEMA:
        raise LessonError(f"{path} was written by a newer version of workbench; update this one to read it")
    return record


def records(root: Path, lesson: str) -> list[Record]:
    """Return the records of all learners of a lesson, by name; files that cannot be read are left out."""
    found = []
    for path in sorted((root / FOLDER / lesson).glob("*.json")):
        try:
            record = read(path)
        except LessonError:
            continue
        if record is not None:
            found.append(record)
    return found


def make_folder(folder: Path) -> None:
    """Make a folder below the runs folder with the permissions of what holds it: learners share a runs folder."""
    if folder.is_dir():
        return
    holder = folder.parent
    if FOLDER in (folder.name, holder.name, holder.parent.name):
        make_folder(holder)
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(holder.stat().st_mode & 0o7777)
