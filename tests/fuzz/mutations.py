"""Seeded mutations of JSON values and of texts: plain `random`, since hypothesis makes some hundred cases a second."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 7, 2**31, 2**63, 10**400, -(10**400), 0.5, 1e308, float("nan"), float("inf"), "", "x",
    "nan", "inf", "linear", "self", "\ud800", "\0", "\x1b[2J", "a\nb", "../../etc/passwd", "files", "9" * 5000,
    [], {}, [[]], [1, 2], ["x", "\udc80"], [None], {"kind": "linear"}, {"kind": []}, {"self": 1}, {"": 1},
)  # fmt: skip
KEYS = ("self", "cls", "kind", "step", "rewind", "lr", "", "__class__", "schema_version", "data", "values", "a.b",
        "status", "loss", "\ud800", "result", "seconds", "text")  # fmt: skip
TOKENS = ("recipe", "wb", ".", "(", ")", "[", "]", "{", "}", "**", ",", "=", ":", "'", '"', "\\", "\n", "\n    ",
          "lambda", "await", "0x", "1e999", "9" * 5000, "(" * 400, "[" * 3000, "-" * 2000, "None", "True",
          "with_", "\0", "\ud800", "f'{x}'", "#", ";", "import os", "del", "*", "...", "1j", "\x1b")  # fmt: skip
NEST = 100_000


def nested(value: Any, random: Random) -> Any:
    """The same value with one to three of its nodes replaced, renamed, added, repeated or removed."""
    tree = {"": copy.deepcopy(value)}
    for _ in range(random.choice((1, 1, 2, 3))):
        holders = [node for node in _containers(tree) if node]
        holder = random.choice(holders)
        key = random.choice(list(holder)) if isinstance(holder, dict) else random.randrange(len(holder))
        what = random.random()
        if what < 0.55 or holder is tree:
            holder[key] = copy.deepcopy(random.choice(VALUES))
        elif isinstance(holder, dict) and what < 0.75:
            holder[random.choice(KEYS)] = copy.deepcopy(random.choice(VALUES))
        elif isinstance(holder, dict) and what < 0.85:
            holder[random.choice(KEYS)] = holder.pop(key)
        elif isinstance(holder, list) and what < 0.85:
            holder.extend(copy.deepcopy(holder[:50]))
        else:
            del holder[key]
    return tree.get("")


def _containers(value: Any) -> list[Any]:
    found, todo = [], [value]
    while todo:
        node = todo.pop()
        if isinstance(node, dict | list):
            found.append(node)
            todo += node.values() if isinstance(node, dict) else node
    return found


def damaged_text(text: str, random: Random) -> str:
    """The text with pieces cut, repeated, moved or replaced by tokens that mean something to a parser."""
    for _ in range(random.choice((1, 1, 2, 4))):
        start = random.randrange(len(text) + 1)
        end = min(len(text), start + random.choice((0, 1, 1, 5, 40)))
        piece = random.choice((random.choice(TOKENS), "", text[start:end] * random.choice((1, 2, 30)), _scalar(random)))
        text = text[:start] + piece + text[end:]
    return text


def damaged_bytes(data: bytes, random: Random) -> bytes:
    """The bytes with some of them lost, flipped, repeated, or cut off at the end as a full disk cuts them."""
    what = random.random()
    if what < 0.05:
        return random.choice((b"[", b'{"a":')) * NEST
    if what < 0.3:
        return data[: random.randrange(len(data) + 1)]
    changed = bytearray(data)
    for _ in range(random.choice((1, 2, 8))):
        place = random.randrange(len(changed) + 1)
        if what < 0.7 and place < len(changed):
            changed[place] = random.randrange(256)
        else:
            changed[place : place + random.choice((0, 1, 9))] = _scalar(random).encode("utf-8", "surrogatepass")
    return bytes(changed)


def json_text(value: Any) -> str:
    """JSON as Python writes it, with numbers of any size and halves of characters as escapes."""
    return json.dumps(value)


def _scalar(random: Random) -> str:
    return json.dumps(random.choice(VALUES))
