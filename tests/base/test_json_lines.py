"""The end of a growing file: whole lines, bounded pieces, samples of what is not read yet."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path

import numpy as np

from workbench.base.json_lines import Tail, finite, parsed


def lines(first: int, count: int) -> bytes:
    return b"".join(b'{"step":%d,"loss":%d.5}\n' % (step, step) for step in range(first, first + count))


def test_pieces_end_with_a_line_and_nothing_is_read_twice(tmp_path: Path) -> None:
    path = tmp_path / "scalars.jsonl"
    tail = Tail(path, piece=100)
    assert tail.read() == []
    path.write_bytes(lines(1, 50) + b'{"step":51,"lo')
    steps = []
    while True:
        steps += [record["step"] for record in tail.read()]
        if not tail.behind:
            break
    assert steps == list(range(1, 51))
    with path.open("ab") as file:
        file.write(b'ss":1.0}\n')
    assert tail.read() == [{"step": 51, "loss": 1.0}]
    assert (tail.read(), tail.behind, tail.left()) == ([], 0, 0)


def test_a_line_longer_than_a_piece_is_read(tmp_path: Path) -> None:
    path = tmp_path / "layers.jsonl"
    path.write_bytes(json.dumps({"step": 1, "state": [0] * 1000}).encode() + b"\n" + lines(2, 1))
    tail = Tail(path, piece=64)
    assert [record["step"] for record in tail.read()] == [1, 2]


def test_an_unfinished_line_alone_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "scalars.jsonl"
    path.write_bytes(b'{"step":1')
    tail = Tail(path)
    assert (tail.read(), tail.behind) == ([], 0)


def test_damaged_lines_hide_nothing_else() -> None:
    block = b'{"step":1}\n{broken\n[2]\n{"step":"3"}\n\n{"rewind":0}\n' + b"[" * 100_000 + b'\n{"step":4}\n'
    assert parsed(block) == [{"step": 1}, {"rewind": 0}, {"step": 4}]
    assert parsed(b'{"step":1}\n1,{"step":2}\n') == [{"step": 1}], "no line smuggles in others"


def test_a_sample_spreads_over_all_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "scalars.jsonl"
    path.write_bytes(lines(1, 20_000))
    tail = Tail(path)
    steps = [record["step"] for record in tail.sample(100)]
    assert (steps[0], steps[-1]) == (1, 20_000)
    assert len(steps) == 101
    assert max(b - a for a, b in itertools.pairwise(steps)) < 300
    assert tail.read()[0]["step"] == 1, "a sample reads nothing away"


def test_numbers_that_json_has_no_word_for_are_none_at_any_depth() -> None:
    found = finite({"a": [1.5, math.nan, "nan"], "b": np.array([[1.0, np.inf]]), "c": (True, None)})
    assert found == {"a": [1.5, None, "nan"], "b": [[1.0, None]], "c": [True, None]}
    assert json.loads(json.dumps(found, allow_nan=False)) == found
