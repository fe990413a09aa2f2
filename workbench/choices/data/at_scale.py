"""Preparation by datatrove: the steps of a recipe over many files, in as many tasks as there are machines for.

datatrove reads, runs the tasks, and finds duplicates; steps that judge a document alone are ours, so that it keeps the
same documents. Where its own parts differ from our steps:

* *Exact duplicates*: of equal documents one stays, not always the first, once there are several tasks; only whole
  documents are compared.
* *Near duplicates*: candidates are removed without counting the word runs that they share, so some pairs below the
  threshold go, too; what is like a removed document goes with it (clusters); its words are what white space separates,
  in small letters, without punctuation and with 0 for every number.
* *Its filters* (``GopherQualityFilter``, ``GopherRepetitionFilter``, ``C4QualityFilter``) are not used. Their words
  come from spaCy, punctuation among them, and words of punctuation alone do not count; repeated phrases are measured
  without the spaces between words; empty lines count as lines; stop words have small letters only; a line may end with
  an apostrophe; braces and filler count in lines that stay.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.base.errors import DataError
from workbench.choices.data.data import Say
from workbench.choices.data.files import Files
from workbench.choices.data.split import document_hash
from workbench.choices.data.steps.exact_duplicates import ExactDuplicates
from workbench.choices.data.steps.near_duplicates import NearDuplicates, rows_of_bands
from workbench.choices.data.steps.step import Document

try:
    from datatrove.data import Document as Passed
    from datatrove.executor import LocalPipelineExecutor
    from datatrove.pipeline.base import PipelineStep
    from datatrove.pipeline.dedup import (
        ExactDedupFilter,
        ExactDedupSignature,
        ExactFindDedups,
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupFilter,
        MinhashDedupSignature,
    )
    from datatrove.pipeline.dedup.exact_dedup import ExactDedupConfig
    from datatrove.pipeline.dedup.minhash import MinhashConfig
    from datatrove.pipeline.readers import JsonlReader
    from datatrove.pipeline.writers import JsonlWriter
    from datatrove.utils.hashing import HashConfig
    from datatrove.utils.word_tokenizers import WordTokenizer
except ImportError as error:
    raise DataError(
        f"preparation by datatrove needs packages that are missing ({error}): pip install 'workbench[scale]'"
    ) from None

ALONE = ("gopher_rules", "c4_rules", "language", "personal_data", "decontaminate")
"""Steps that judge each document alone: any number of tasks gives the same."""
DOCUMENTS = "documents"


class Stage:
    """One executor's work: a pipeline, and how many tasks share it."""

    def __init__(self, name: str, tasks: int, *steps: Any) -> None:
        self.name, self.tasks, self.steps = name, tasks, list(steps)


def stages(data: Files, folder: Path, tasks: int) -> list[Stage]:
    """Return what to run, one stage after the other, for an executor of datatrove of one's own (Slurm, Ray).

    Args:
        folder: gets ``documents/*.jsonl.gz``, and what stages hand on.
        tasks: that share the files.

    Raises:
        DataError: a step that needs all documents at once, or data of another kind.
    """
    if not isinstance(data, Files) or data.stream:
        raise DataError("datatrove prepares data 'files' (data.stream 0); write other text to files first")
    found: list[Stage] = []
    flow: list[Any] = [ReadFiles(data)]
    for number, step in enumerate(data.steps):
        name = f"{number + 1}_{step.kind}"
        if step.kind in ALONE:
            flow.append(Judge(step))
        elif isinstance(step, (ExactDuplicates, NearDuplicates)):
            found.append(Stage(f"before_{name}", tasks, *flow, _writer(folder / f"before_{name}")))
            more, flow = _deduplication(step, folder / name, folder / f"before_{name}", tasks)
            found += more
        else:
            raise DataError(
                f"data.steps: {step.kind} (number {number + 1}) looks at all documents at once, and a task of "
                f"datatrove has some of them; use {', '.join(ALONE)}, exact_duplicates and near_duplicates, or prepare "
                "without datatrove"
            )
    return [*found, Stage("write", tasks, *flow, _writer(folder / DOCUMENTS))]


def prepare_at_scale(data: Files, folder: Path, tasks: int, workers: int, say: Say) -> Path:
    """Run all stages on this machine; return the folder of the documents that are left, to train on as ``files``.

    Stages that were completed are not run again.

    Args:
        workers: processes at a time.

    Raises:
        DataError: as :func:`stages`; a file cannot be read.
    """
    for stage in stages(data, folder, tasks):
        say(f"datatrove: {stage.name}")
        logs = str(folder / "logs" / stage.name)
        LocalPipelineExecutor(stage.steps, stage.tasks, workers=min(workers, stage.tasks), logging_dir=logs).run()
    return folder / DOCUMENTS


class ReadFiles(PipelineStep):  # type: ignore[misc]
    """Reads the documents of every so many-th file, without empty ones and those of ``heldout_paths``."""

    name, type = "workbench files", "reader"

    def __init__(self, data: Files) -> None:
        super().__init__()
        self.source = data

    def run(self, data: Any = None, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Yield the documents of this rank; an id is ``rank/number``."""
        held = {document_hash(text) for text in self.source.heldout_documents() or ()}
        files = tuple(map(str, self.source.files()[rank::world_size]))
        part = self.source.model_copy(update={"paths": files, "heldout_paths": ()})
        for number, text in enumerate(part.documents() if files else ()):
            if text and not text.isspace() and document_hash(text) not in held:
                self.stat_update("total")
                yield Passed(text, f"{rank}/{number}")


class Judge(PipelineStep):  # type: ignore[misc]
    """A preparation step that judges each document alone."""

    type = "filter"

    def __init__(self, step: Any) -> None:
        super().__init__()
        self.name, self.step = f"workbench {step.kind}", step

    def run(self, data: Any, rank: int = 0, world_size: int = 1) -> Iterator[Any]:
        """Yield the documents that the step lets go on, as it changed them."""
        waiting: deque[Any] = deque()

        def documents() -> Iterator[Document]:
            for number, each in enumerate(data):
                waiting.append(each)
                yield Document(number, (), each.text)

        for verdict in self.step.judge(documents()):
            document = waiting.popleft()
            self.stat_update("total")
            if verdict.removed:
                self.stat_update("dropped", f"dropped_{verdict.removed}")
            else:
                document.text = verdict.text
                yield document


class Words(WordTokenizer):  # type: ignore[misc]
    """Words as our rules take them: what white space separates."""

    def word_tokenize(self, text: str) -> list[str]:
        """Return the words of a text."""
        return text.split()

    def sent_tokenize(self, text: str) -> list[str]:
        """Return a text as one sentence: no stage asks for them."""
        return [text]

    def span_tokenize(self, text: str) -> list[tuple[int, int]]:
        """Return where it begins and ends."""
        return [(0, len(text))]


def _deduplication(step: Any, work: Path, before: Path, tasks: int) -> tuple[list[Stage], list[Any]]:
    """Return the stages that find duplicates, and the steps that leave them out of what is read next."""
    read = JsonlReader(str(before))
    marks, found, name = str(work / "marks"), str(work / "found"), work.name
    if isinstance(step, ExactDuplicates):
        if step.by != "document":
            raise DataError("data.steps: datatrove compares whole documents; set exact_duplicates.by to 'document'")

        def content(document: Passed) -> bytes:
            return step.normalised(document.text)

        # It looks at the annotation to choose a hash, which is a text where annotations are postponed.
        content.__annotations__["return"] = bytes
        config = ExactDedupConfig(content, hash_config=HashConfig(hash_fc="sha1"))
        return [
            Stage(f"{name}_marks", tasks, read, ExactDedupSignature(marks, config)),
            Stage(f"{name}_found", 1, ExactFindDedups(marks, found, config)),
        ], [read, ExactDedupFilter(found, config)]
    rows = rows_of_bands(step.threshold, step.permutations)
    # Not xxhash, its default: 4.0 takes no text any more.
    sha1 = HashConfig(hash_fc="sha1")
    minima = MinhashConfig(step.shingle_words, step.permutations // rows, rows, hash_config=sha1)
    buckets = str(work / "buckets")
    return [
        Stage(f"{name}_marks", tasks, read, MinhashDedupSignature(marks, minima, Words())),
        Stage(f"{name}_buckets", minima.num_buckets, MinhashDedupBuckets(marks, buckets, config=minima)),
        Stage(f"{name}_found", 1, MinhashDedupCluster(buckets, found, config=minima)),
    ], [read, MinhashDedupFilter(found)]


def _writer(folder: Path) -> Any:
    return JsonlWriter(str(folder), "${rank}.jsonl.gz")
