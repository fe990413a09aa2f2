"""Prose out of documentation: what stays, what goes."""

from __future__ import annotations

import pytest

from workbench.choices.data import harvest

SOURCE = '''
"""Module docstring, long enough to be looked at because it goes on and on about what the module is for and who it is
written by, and so on, and so on, for as long as it takes."""

def f():
    """Function docstring, long enough to be looked at because it goes on about what the function does and why it does
    so, and about nothing else, for as long as it takes."""

class C:
    """Class docstring, long enough to be looked at because it goes on about what the class holds and who makes objects
    of it, and when they do so, for as long as it takes."""
    async def m(self):
        """Short."""

register("x", """String handed to a call, long enough to be looked at because builtins get their documentation in this
very way in more than one package, for as long as it takes.""")
'''


def test_strings_of_a_source():
    found = [text.split()[0] for text in harvest.strings_of(SOURCE.encode(), "s.py")]
    assert sorted(found) == ["Class", "Function", "Module", "String"]


LONG = "words that go on and on " * 10


@pytest.mark.parametrize(
    ("source", "found"),
    [
        (f"# it's a comment\n'''{LONG}'''", [LONG]),
        (f'x = "#"; """{LONG}""" # """no"""', [LONG]),
        (f'"""{LONG}\\n\\x41\\\nB"""', [f"{LONG}\nAB"]),
        (f'r"""{LONG}\\n"""', [f"{LONG}\\n"]),
        (f'"""{LONG}"quoted" and \'more\' """', [f"{LONG}\"quoted\" and 'more' "]),
        (f'f"""{LONG}{{x}}"""', []),
        (f'b"""{LONG}"""', []),
        (f'rb"""{LONG}"""', []),
        (f'"""{LONG}', []),
        (f'"""{LONG}\\N{{no such name}}"""', []),
        (f'def f(:\n  """{LONG}"""', [LONG]),
        ("", []),
    ],
)
def test_literals(source, found):
    assert list(harvest.strings_of(source.encode(), "s.py")) == found


DOCSTRING = """
Return the mean of the elements along the given axis of an array.

The **mean** is the sum of all of the :ref:`elements <glossary>` over their number, see
`the guide <https://example.org/guide>`_ or https://example.org for more [1]_.

Parameters
----------
a : array_like
    Array that holds the numbers whose mean is desired by the caller.
axis : int, optional

.. note:: This is a remark that the reader should keep in mind at all times.

.. code-block:: python

    this = code.that("should go away")

>>> mean([1, 2])
1.5

Use it as in this example, which is followed by code::

    mean(x)

+-----+-----+
| the | one |
+-----+-----+

- the first entry of the list that has a few more words
- no prose
"""


def test_what_stays_of_a_docstring():
    assert list(harvest.paragraphs_of(DOCSTRING)) == [
        "Return the mean of the elements along the given axis of an array.",
        "The mean is the sum of all of the elements over their number, see the guide or for more.",
        "Array that holds the numbers whose mean is desired by the caller.",
        "This is a remark that the reader should keep in mind at all times.",
        "Use it as in this example, which is followed by code:",
        "the first entry of the list that has a few more words",
    ]


@pytest.mark.parametrize(
    ("paragraph", "prose"),
    [
        ("The loop reads a row and gives it to the model that is in use.", True),
        ("Too few words here.", False),
        ("x[i] = y[i] + z[i] if a[i] > 0 else b[i] - c[i]", False),
        ("import numpy as np from torch import nn optim utils data loader", False),
        ("Das Modell liest eine Zeile und gibt dann alles weiter", False),
    ],
)
def test_prose(paragraph, prose):
    assert harvest.is_prose(paragraph) is prose


def test_markdown():
    text = "# A heading\n\nIt is [a link](http://x.y) in a sentence with `code` and *stress* in it.\n\n"
    text += "```sh\nmake all of the things in this one\n```\n"
    assert list(harvest.paragraphs_of(text)) == ["It is a link in a sentence with code and stress in it."]


def test_documents_of_files(tmp_path):
    words = "This is the description of a package that does a few things for those who use it. " * 3
    metadata = tmp_path / "METADATA"
    metadata.write_text(f"Name: x\nSummary: {words}\n\n{words}\n")
    assert harvest.documents_of(str(metadata)) == [(words.strip(),)]
    (tmp_path / "short.md").write_text("It is too short to be a document of the corpus.")
    (tmp_path / "latin.rst").write_bytes(words.encode() + b"\xe9")
    assert harvest.documents_of(str(tmp_path / "short.md")) == []
    assert harvest.documents_of(str(tmp_path / "latin.rst")) == []
    assert harvest.documents_of(str(tmp_path / "absent.py")) == []
