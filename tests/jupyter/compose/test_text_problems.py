"""Places of problems: the deepest line that a path leads to, or the line of what surrounds it."""

from __future__ import annotations

import ast

import pytest

from workbench.base.errors import RecipeError
from workbench.jupyter.compose.text_problems import TextError, TextProblem, json_tree, placed


def tree(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


CALL = """{
    'seed': 1,
    'data': {
        'tokenizer': {'kind': 'trained',
                      'size': 3}, 'rows': ROWS},
    'a.b': {
        'c': 4},
}"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("seed", 2), ("data", 3), ("data.rows", 5), ("data.rows.deeper", 5), ("data.tokenizer", 4),
        ("data.tokenizer.size", 5), ("data.tokenizer.unnamed", 4), ("data.unnamed", 3), ("a.b", 6), ("a.b.c", 7),
        ("a", 1), ("unnamed", 1), ("", 1),
    ],
)  # fmt: skip
def test_a_path_leads_to_its_line(path: str, line: int) -> None:
    error = RecipeError(f"{path}: wrong" if path else "all of it is wrong")
    assert placed(error, tree(CALL)) == [TextProblem(line, str(error))]


def test_each_line_of_a_complaint_has_a_place() -> None:
    found = placed(RecipeError("seed: wrong\ndata.rows: wrong, too\nand more: of it"), tree(CALL))
    assert [problem.line for problem in found] == [2, 5, 1]
    assert str(TextError(found)).splitlines()[1] == "line 5: data.rows: wrong, too"


def test_the_tree_of_json_keeps_its_lines() -> None:
    found = json_tree('\n\n{"a": true,\n "b": {"c": null, "d": "\\/x"}}')
    assert [placed(RecipeError(f"{path}: x"), found)[0].line for path in ("a", "b", "b.d")] == [3, 4, 4]
    assert json_tree("{") is None
    assert placed(RecipeError("a: x"), None)[0].line == 1
