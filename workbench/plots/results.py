"""The outcome of a run for machines: one JSON object, a JUnit file for CI, and a verdict in words."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.atomic import write_bytes
from workbench.errors import RunFailed, TargetMissed
from workbench.plots.facts import bits_per_byte, failure, heldout_loss, learned_in_words, measured
from workbench.printable import plain, plain_lines
from workbench.runs.folder import write_json
from workbench.telemetry import number

if TYPE_CHECKING:
    from workbench.runs.view import RunView

# A traceback with the log's last words fits; a whole log does not belong into a result.
LONGEST_ERROR = 10_000


def outcome(view: RunView, target_loss: float | None = None) -> dict[str, Any]:
    """What a run achieved, JSON-able; numbers that are not known are ``None``.

    Args:
        target_loss: held-out loss in nats that was to be reached, if any.

    Returns:
        ``run, name, state, steps, tokens, seconds, tokens_per_second, train_loss, heldout_loss, bits_per_byte, score,
        unigram_entropy, bigram_entropy, learned, learned_in_words, mfu, parameters, target_loss, target_met, error,
        recipe, environment``; ``learned`` as :data:`workbench.floors.Learned`, None where nothing can be claimed.
    """
    result = view.evaluations.get("result") or {}
    # A loss that is not finite is none: JSON has no word for it, and it can meet no target.
    loss = _finite(heldout_loss(view))
    yardstick = view.yardstick
    met = None if target_loss is None else loss is not None and loss <= target_loss
    steps = measured(view, "steps") or measured(view, "step")
    tokens = measured(view, "tokens")
    return {
        "run": view.id,
        "name": plain(view.name, 80),
        "state": view.status,
        "steps": None if steps is None else int(steps),
        "tokens": None if tokens is None else int(tokens),
        "seconds": _finite(measured(view, "seconds")),
        "tokens_per_second": _finite(measured(view, "tokens_per_second")),
        "train_loss": _finite(None if result.get("train_loss") is None else number(result["train_loss"])),
        "heldout_loss": loss,
        "bits_per_byte": _finite(bits_per_byte(view)),
        "score": yardstick.score,
        "unigram_entropy": yardstick.levels.get("word frequencies"),
        "bigram_entropy": yardstick.levels.get("neighbours"),
        "learned": yardstick.learned(loss),
        "learned_in_words": learned_in_words(view),
        "mfu": _finite(measured(view, "mfu")),
        "parameters": result.get("parameters", view.environment.get("parameters")),
        "target_loss": target_loss,
        "target_met": met,
        "error": failure(view)[:LONGEST_ERROR],
        # Whole, so that this file alone is enough to run it again.
        "recipe": view.recipe,
        "environment": view.environment,
    }


def verdict(found: dict[str, Any]) -> str:
    """One sentence about an :func:`outcome`: what was reached, what was learned, whether the target was met."""
    name, state = plain(found["name"]), found["state"]
    if state in ("failed", "lost"):
        return f"{name} {state}: {found['error'] or 'no reason was written; see worker.log in the run folder'}"
    if found["heldout_loss"] is None:
        return f"{name} {state} without a held-out loss"
    sentence = (
        f"{name} {state} at held-out loss {found['heldout_loss']:.3f} nats"
        f" (word frequencies {_number(found['unigram_entropy'])}, neighbours {_number(found['bigram_entropy'])}): "
        f"{found['learned_in_words']}"
    )
    if found["target_loss"] is None:
        return sentence
    target = "target met" if found["target_met"] else "target missed"
    return f"{sentence}; {target}: {found['heldout_loss']:.3f} against {found['target_loss']:.3f}"


def require(found: dict[str, Any]) -> None:
    """Raise unless the run ended well and met its target: the last line of a notebook that CI judges.

    Raises:
        RunFailed: it failed, is lost, or has not ended.
        TargetMissed: it ended above its target loss.
    """
    if found["state"] not in ("finished", "stopped"):
        raise RunFailed(verdict(found))
    if found["target_met"] is False:
        raise TargetMissed(verdict(found))


def write_outcome(found: dict[str, Any], path: str | Path) -> Path:
    """Write an :func:`outcome` as JSON at ``path`` and as JUnit XML beside it (``.xml``), each whole or not at all.

    Returns:
        The path of the JSON file.

    Raises:
        OSError: the folder cannot be written.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, found)
    write_bytes(path.with_suffix(".xml"), junit(found))
    return path


def junit(found: dict[str, Any]) -> bytes:
    """An :func:`outcome` as a JUnit test suite of two cases, ``run`` and ``target``, UTF-8."""
    name = plain(found["name"])
    broken, missed = found["state"] not in ("finished", "stopped"), found["target_met"] is False
    # A run that broke has not also missed its target: CI is to show the one cause.
    suite = ElementTree.Element(
        "testsuite", name="workbench", tests="2", failures=str(int(missed and not broken)), errors=str(int(broken)),
        skipped=str(int(found["target_loss"] is None)), time=f"{found['seconds'] or 0:.3f}",
    )  # fmt: skip
    ran = ElementTree.SubElement(suite, "testcase", classname=name, name="run", time=f"{found['seconds'] or 0:.3f}")
    target = ElementTree.SubElement(suite, "testcase", classname=name, name="target", time="0")
    # XML 1.0 cannot hold control characters, not even escaped: one terminal code in a log would void the whole file.
    text = plain_lines(verdict(found))
    if broken:
        ElementTree.SubElement(ran, "error", message=plain(text, 300)).text = text
    elif missed:
        ElementTree.SubElement(target, "failure", message=plain(text, 300)).text = text
    if found["target_loss"] is None:
        ElementTree.SubElement(target, "skipped", message="no target was given")
    return ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}"
