"""Prose out of documentation: docstrings of Python sources, reStructuredText, Markdown and plain text, cleaned.

Standard library only, and importable without the rest of the package: :mod:`workbench.choices.data.workers` runs this
file as a program of its own, several at a time. Sources are read, never imported: one regular expression walks over
their comments and string literals, which gives docstrings and also the strings that are handed to ``add_docstr`` and
the like. Parsing every file costs five times as much and finds the same prose within 0.1 % (counted in words over
14,000 installed files).
"""

from __future__ import annotations

import ast
import functools
import inspect
import json
import re
import string
import sys
import warnings
from collections.abc import Iterable, Iterator

VERSION = 2
"""Part of the cache key: raise it whenever the same sources would give other text."""
SHORTEST_STRING = 150
"""Characters; a shorter string cannot hold the thirty words that make a document."""
PARAGRAPH_WORDS = 6
DOCUMENT_WORDS = 30

# The commonest words of English prose; running text holds 35-50 % of them, code and tables nearly none.
_FUNCTION_WORDS = frozenset(
    """
    a an the this that these those it its is are was were be been being has have had do does did not no nor of
    in on at to for from by with as into about over under between and or but if then else when while where which
    who whose what how than so such can could may might must shall should will would you your we our they their
    he his she her i all any each every some most other only also more one two same there here up out
    """.split()  # noqa: SIM905
)
_NO_LETTERS = bytes(set(range(256)) - set(string.ascii_letters.encode()))
# Comments first: an apostrophe in one must not open a string.
# Possessive quantifiers (++): a literal that never ends must not send the search back over the whole file.
_LITERAL = re.compile(
    rb"""#[^\n]*"""
    rb'''|"""(?:[^"\\]++|\\.|"(?!""))*+"""'''
    rb"""|'''(?:[^'\\]++|\\.|'(?!''))*+'''"""
    rb"""|"(?:[^"\\\n]++|\\.)*+"|'(?:[^'\\\n]++|\\.)*+'""",
    re.DOTALL,
)
_PREFIX = re.compile(rb"(?<![A-Za-z0-9_])[rRbBuUfF]{1,2}$")
_FENCE = re.compile(r"^\s*(```|~~~)")
_DIRECTIVE = re.compile(r"^(\s*)\.\.\s+([\w:+-]+?)::\s*(.*)$")
_COMMENT = re.compile(r"^\s*\.\.(\s|$)")
_OPTION = re.compile(r"^\s*:[\w -]+:(\s|$)")
_RULE = re.compile(r"^\s*([=\-~^\"'#*+.`_:])\1{2,}\s*$")
_TABLE = re.compile(r"^\s*(\||\+[-=+]{3,}|[=-]{3,}\s+[=-]{3,})|\|.*\|")
_ENTRY = re.compile(r"^\s*(?:[*\-+•]|\(?\d{1,2}[.)]|#\.)\s+")
_FIELD = re.compile(r"^\s*(?::\w[^:\n]*:|@\w+[^:\n]*:)\s*")
_GOOGLE = re.compile(r"^\s*[*`\w.,/ \[\]]{1,40}?(?:\s*\([^)]*\))?\s*:\s+(?=[A-Z])")
_NUMPY = re.compile(r"^\s*[*\w., ]{1,60}\s:\s\S")
HEADING_CHARACTERS = 32
"""Words of the longest heading without a mark."""
_HEADING = re.compile(r"^\s*(?:#{1,6}\s+.*|[A-Z][\w ]{2,30}:?\s*)$")
_ROLE = re.compile(r":[\w:+-]+:`[~!]?([^`<]*?)(?:\s*<[^`>]*>)?`")
_REST_LINK = re.compile(r"`([^`<]+?)\s*<[^`>]*>`_{0,2}")
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]+)\](?:\([^)]*\)|\[[^\]]*\])")
_NOTE = re.compile(r"\s*\[[#*]?[\w-]{0,20}\]_")
_TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>|<!--.*?-->|&[a-z]{2,6};")
_URL = re.compile(r"\b(?:https?|ftp)://\S+|\bwww\.\S+")
_MARK = re.compile(r"``+|\*\*|(?<![\w\\])[`*_](?=\w)|(?<=[\w.,;:!?)\"'])[`*]+_*(?!\w)|`")
_MARKUP = (
    (_ROLE, r"\1", (":`",)), (_REST_LINK, r"\1", ("<",)), (_IMAGE, "", ("![",)), (_LINK, r"\1", ("](", "][")),
    (_NOTE, "", ("]_",)), (_URL, "", ("://", "www.")), (_TAG, " ", ("<", "&")), (_MARK, "", ("`", "*", "_")),
)  # fmt: skip
"""Replacements in order: pattern, text, and strings of which one is in any match."""
_WORD = re.compile(r"[a-z]+(?:'[a-z]+)?")
_KEPT_DIRECTIVES = frozenset(
    """
    note warning tip hint important caution attention danger seealso admonition versionadded versionchanged
    deprecated rubric topic
    """.split()  # noqa: SIM905
)


def strings_of(source: bytes, name: str) -> Iterator[str]:
    """Yield docstrings and other long strings of a Python source, in order.

    Args:
        source: the file's bytes, in UTF-8.
        name: of the file; the topics of pydoc are a table of strings that a program broke into lines, which only the
            parser puts together again.
    """
    if name.endswith("topics.py"):
        found = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
        yield from (text for text in found if isinstance(text, str) and len(text) >= SHORTEST_STRING)
        return
    if b'"""' not in source and b"'''" not in source:  # only a triple-quoted string runs over lines
        return
    for match in _LITERAL.finditer(source):
        if match.end() - match.start() < SHORTEST_STRING or match[0].startswith(b"#"):
            continue
        prefix = _PREFIX.search(source, max(0, match.start() - 3), match.start())
        text = _decoded((prefix[0] if prefix else b"").lower(), match[0])
        if len(text) >= SHORTEST_STRING and " " in text:
            yield text


def _decoded(prefix: bytes, literal: bytes) -> str:
    """Return text of a string literal; nothing for bytes, for templates (f-strings)
    and for what is no literal after all.
    """
    if b"f" in prefix or b"b" in prefix:
        return ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in other people's files
            return str(ast.literal_eval((prefix + literal).decode("utf-8")))
    # MemoryError is what the parser raises for expressions nested too deeply.
    except (SyntaxError, ValueError, MemoryError):
        return ""


@functools.lru_cache(maxsize=4096)  # generated classes repeat whole docstrings
def paragraphs_of(text: str) -> tuple[str, ...]:
    """Return the prose paragraphs of a docstring or document, lines joined, markup gone.

    Examples, code, tables, headings and parameter lists without sentences are left out.

    Example:
        >>> paragraphs_of("Adds :func:`two` numbers and gives back the sum of them.\\n\\n>>> add(1, 2)\\n3\\n")
        ('Adds two numbers and gives back the sum of them.',)
    """
    blocks = _blocks(_prose_lines(inspect.cleandoc(text).splitlines()))
    found = (_plain(block) for block in blocks if block.count(" ") >= PARAGRAPH_WORDS - 1)
    return tuple(paragraph for paragraph in found if is_prose(paragraph))


def is_prose(paragraph: str) -> bool:
    """Return whether a paragraph reads like English: enough words, mostly letters, enough of the commonest words."""
    words = paragraph.lower().split()
    if len(words) < PARAGRAPH_WORDS:
        return False
    letters = len(paragraph.encode("ascii", "ignore").translate(None, _NO_LETTERS))
    if letters < 0.86 * (len(paragraph) - len(words) + 1):
        return False
    whole = _WORD.findall(paragraph.lower())
    return sum(map(_FUNCTION_WORDS.__contains__, whole)) >= 0.22 * len(words)


def _prose_lines(lines: list[str]) -> Iterator[str]:
    """Yield lines outside code, examples and tables; an empty line wherever something was left out."""
    index = 0
    while index < len(lines):
        line = lines[index].expandtabs()
        bare = line.strip()
        # Most lines begin with a letter, and then only these three can be anything but prose.
        if bare[:1].isalpha() and "|" not in bare and not bare.endswith("::") and not bare.startswith("In ["):
            yield line
            index += 1
            continue
        directive = _DIRECTIVE.match(line)
        if _FENCE.match(line):
            index = _past_fence(lines, index)
        elif bare.startswith((">>>", "In [")):
            index = _past_example(lines, index)
        elif directive and directive[2].lower() not in _KEPT_DIRECTIVES:
            index = _past_indented(lines, index)
        elif directive:
            yield from ("", directive[3])
            index += 1
            continue
        elif _COMMENT.match(line) or _OPTION.match(line) or _RULE.match(line) or _TABLE.search(line):
            index += 1
        elif bare.endswith("::"):
            yield line.rstrip()[:-1]
            index = _past_indented(lines, index)
        else:
            yield line
            index += 1
            continue
        yield ""


def _past_example(lines: list[str], index: int) -> int:
    """Return first blank line after an interactive example: what it prints goes with it."""
    while index < len(lines) and lines[index].strip():
        index += 1
    return index


def _past_fence(lines: list[str], index: int) -> int:
    for end in range(index + 1, len(lines)):
        if _FENCE.match(lines[end]):
            return end + 1
    return len(lines)


def _past_indented(lines: list[str], index: int) -> int:
    """Return first line after ``index`` that is not blank and not indented deeper than it."""
    margin = len(lines[index]) - len(lines[index].lstrip())
    end = index + 1
    while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > margin):
        end += 1
    return end


def _blocks(lines: Iterable[str]) -> Iterator[str]:
    """Yield paragraphs: lines up to an empty one, a list entry, a parameter or a change of indentation to the left."""
    block: list[str] = []
    margin = 0
    for line in lines:
        bare = line.strip()
        indent = len(line) - len(line.lstrip())
        body = _entry_text(line)
        if block and (not bare or body is not None or indent < margin):
            yield " ".join(block)
            block = []
        if bare and not ((len(bare) <= HEADING_CHARACTERS or bare[0] == "#") and _HEADING.match(line)):
            block.append(bare if body is None else body)
        margin = indent
    if block:
        yield " ".join(block)


def _entry_text(line: str) -> str | None:
    """Return text of a list entry or a described parameter without its mark or name; None for any other line."""
    letter_first = line.lstrip()[:1].isalpha()
    if letter_first and ":" not in line:
        return None
    for pattern in (_GOOGLE,) if letter_first else (_ENTRY, _FIELD, _GOOGLE):
        match = pattern.match(line)
        if match:
            return line[match.end() :].strip()
    return "" if _NUMPY.match(line) else None


def _plain(block: str) -> str:
    """Return a paragraph without markup and addresses."""
    for pattern, by, parts in _MARKUP:
        # To look for a few characters takes a tenth of the time, and most paragraphs have none of them.
        for part in parts:
            if part in block:
                block = pattern.sub(by, block)
                break
    return " ".join(block.split())


def documents_of(path: str) -> list[tuple[str, ...]]:
    """Return the documents of one file, each a list of paragraphs; a file that cannot be read holds none.

    Args:
        path: a Python source gives one document per docstring, any other file one in all.
    """
    try:
        with open(path, "rb") as file:
            source = file.read()
        if path.endswith(".py"):
            texts = list(strings_of(source, path))
        else:
            text = source.decode("utf-8")
            # The description follows the header fields of a METADATA file.
            texts = [text.partition("\n\n")[2] if path.endswith("METADATA") else text]
    except (OSError, UnicodeDecodeError):
        return []
    documents = (paragraphs_of(text) for text in texts)
    return [d for d in documents if sum(len(p.split()) for p in d) >= DOCUMENT_WORDS]


def main() -> None:
    """Answer requests on standard input: one JSON list of paths a line, one JSON list of documents per path back."""
    for line in sys.stdin:
        print(json.dumps([documents_of(path) for path in json.loads(line)]), flush=True)


if __name__ == "__main__":
    main()
