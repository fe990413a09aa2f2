"""Scripts and languages of the documents: counted in the report, and kept or removed by their share."""

# ruff: noqa: RUF001  (stop words of other scripts are no mistyped Latin letters)

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Literal

from pydantic import field_validator

from workbench.base.errors import unknown
from workbench.choices.choice import knob
from workbench.choices.data.steps.step import Document, Step, Verdict

OTHER = "other"
_RANGES = """
    Latin 0041-005A 0061-007A 00AA-00AA 00BA-00BA 00C0-00D6 00D8-00F6 00F8-02B8 1E00-1EFF 2C60-2C7F A722-A787 FF21-FF5A
    Greek 0370-03FF 1F00-1FFF
    Cyrillic 0400-052F 1C80-1C8F 2DE0-2DFF A640-A69F
    Armenian 0531-058F
    Hebrew 0590-05FF FB1D-FB4F
    Arabic 0600-06FF 0750-077F 0870-08FF FB50-FDFF FE70-FEFF
    Devanagari 0900-097F A8E0-A8FF
    Bengali 0980-09FF
    Gurmukhi 0A00-0A7F
    Gujarati 0A80-0AFF
    Oriya 0B00-0B7F
    Tamil 0B80-0BFF
    Telugu 0C00-0C7F
    Kannada 0C80-0CFF
    Malayalam 0D00-0D7F
    Sinhala 0D80-0DFF
    Thai 0E00-0E7F
    Lao 0E80-0EFF
    Tibetan 0F00-0FFF
    Myanmar 1000-109F
    Georgian 10A0-10FF 1C90-1CBF 2D00-2D2F
    Hangul 1100-11FF 3130-318F A960-A97F AC00-D7FF
    Ethiopic 1200-139F
    Khmer 1780-17FF
    Kana 3040-30FF 31F0-31FF FF66-FF9F
    Han 2E80-2FDF 3005-3007 3400-4DBF 4E00-9FFF F900-FAFF 20000-3134F
"""
SCRIPTS = {line.split()[0]: line.split()[1:] for line in _RANGES.strip().splitlines()}
"""Blocks of Unicode by script (Unicode 15, Blocks.txt and Scripts.txt); letters of smaller scripts are ``other``."""

_STOP_WORDS = """
    en the of and to in is that it was for with as his on be at by had not are but from this have which
    de der die und das ist nicht ein eine zu den von mit sich des auf für dem im auch es als an werden aus er
    fr le la les et des est une dans que qui pour pas du sur au avec ce il plus par ne se sont était elle
    es el la los de que y en un una es se no las por con para del al lo como más su pero fue sus
    it il di che la è un una per non con del della sono le si da più come gli alla dei nel ha anche
    pt o os que não uma do da em um para com se na por mais as dos como mas foi ao ele das à
    nl de het een van en is dat niet te zijn met voor op aan er om ook als door maar bij werd naar uit
    sv och att det som en är på för av med inte den till om har de ett han var jag men så från vid
    da og det at er en på til af som med for ikke den de har et han var jeg men så fra ved blev
    pl nie i w na się z do że jest to jak o ale za od po przez był tym są jego dla tego oraz
    cs a je se na že v to s z do jsem si ale jak jako by za není pro byl který jeho také nebo
    ro și în de la nu a cu pe să un este o din care mai pentru au ca al lui fost sunt dar prin
    hu a az és hogy nem is egy ez volt meg csak de ha mint már el még van ki azt vagy lehet után
    fi ja on ei että se oli hän mutta kun niin myös ovat ole mukaan joka sen kuin tai jo oli hänen vuonna
    tr ve bir bu da de için ile olarak olan ne daha çok gibi var sonra ise en kadar olduğu değil ama tarafından
    vi và của là có được trong cho không một những các với người này đã để khi từ đến về tại như vào năm
    id yang dan di itu dengan untuk tidak ini dari dalam pada akan adalah oleh ke juga sebagai tersebut dapat bahwa
    ru и в не на что с как по это он к но из у за от так же для был его все то о были их также они или которые
    uk і в не на що з як до та це він за від але про у для був його або й також які після були їх вони
    bg и в на не се да от за са е с по като че това си но до който беше са след при или
"""
STOP_WORDS = {line.split()[0]: frozenset(line.split()[1:]) for line in _STOP_WORDS.strip().splitlines()}
"""The commonest words of twenty languages, chosen by hand for this file."""
_BY_SCRIPT = {
    "Greek": "el", "Armenian": "hy", "Hebrew": "he", "Arabic": "ar", "Devanagari": "hi", "Bengali": "bn",
    "Gurmukhi": "pa", "Gujarati": "gu", "Oriya": "or", "Tamil": "ta", "Telugu": "te", "Kannada": "kn",
    "Malayalam": "ml", "Sinhala": "si", "Thai": "th", "Lao": "lo", "Tibetan": "bo", "Myanmar": "my", "Georgian": "ka",
    "Hangul": "ko", "Ethiopic": "am", "Khmer": "km", "Kana": "ja", "Han": "zh",
}  # fmt: skip
"""The language with most speakers of a script that the stop words do not tell apart."""
LANGUAGES = tuple(sorted({*STOP_WORDS, *_BY_SCRIPT.values()}))
UNKNOWN = "unknown"
LEAST_STOP_SHARE = 0.05
"""Below this share of stop words among the words no language is named."""
LOOKED_AT = 20_000
"""Characters of a document from which its scripts and language are told."""
_WORD = re.compile(r"[^\W\d_]+")
_BOUNDS = sorted(
    bound
    for name, blocks in SCRIPTS.items()
    for low, high in (block.split("-") for block in blocks)
    # Where one block ends and the next begins, the beginning counts: it stands behind.
    for bound in ((int(low, 16), 1, name), (int(high, 16) + 1, 0, OTHER))
)
_STARTS, _NAMES = [start for start, _, _ in _BOUNDS], [name for _, _, name in _BOUNDS]


class Language(Step):
    """Counts scripts and languages, and removes documents in others than those that are asked for.

    Scripts are told by Unicode's blocks, languages by script and by the commonest words.

    Source: The Unicode Standard 15, Scripts.txt; stop words: Grefenstette 1995 (two language identification schemes).
    """

    kind: Literal["language"] = "language"
    scripts: tuple[str, ...] = knob((), "scripts to keep (Latin, Han, Arabic, ...); empty: all")
    least_script_share: float = knob(0.5, "least share of letters in these scripts", gt=0, le=1)
    languages: tuple[str, ...] = knob((), "languages to keep (en, de, zh, ...; unknown); empty: all")

    @field_validator("scripts")
    @classmethod
    def _known_scripts(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return _known("script", names, (*SCRIPTS, OTHER))

    @field_validator("languages")
    @classmethod
    def _known_languages(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        return _known("language", names, (*LANGUAGES, UNKNOWN))

    def judge(self, documents: Iterable[Document]) -> Iterator[Verdict]:
        """Yield the verdicts, each from the first 20,000 characters of the document alone."""
        for document in documents:
            scripts = script_counts(document.text[:LOOKED_AT])
            spoken = language_of(document.text[:LOOKED_AT], scripts)
            facts = {f"letters in {name}": count for name, count in scripts.items()} | {f"documents in {spoken}": 1}
            reason, detail = self._why(scripts, spoken)
            yield Verdict(document, "" if reason else document.text, reason, detail, facts=facts)

    def _why(self, scripts: Counter[str], spoken: str) -> tuple[str, str]:
        share = sum(scripts[name] for name in self.scripts) / max(1, scripts.total())
        if self.scripts and share < self.least_script_share:
            most = max(scripts, key=lambda name: scripts[name], default="no script")
            return f"mostly {most}", f"{share:.0%} of the letters in {', '.join(self.scripts)}"
        if self.languages and spoken not in self.languages:
            return f"language {spoken}", ""
        return "", ""


def script_counts(text: str) -> Counter[str]:
    """Return how many letters (and vowel signs) of each script a text has.

    Example:
        >>> script_counts("Привет, world 42!")
        Counter({'Cyrillic': 6, 'Latin': 5})
    """
    found: Counter[str] = Counter()
    # By character: a text has few different ones.
    for character, count in Counter(text).items():
        if name := _script(character):
            found[name] += count
    return found


def language_of(text: str, scripts: Counter[str]) -> str:
    """Return the code of a text's language; ``unknown`` where neither its script nor its words tell.

    Example:
        >>> text = "Das ist nicht der Anfang und auch nicht das Ende."
        >>> language_of(text, script_counts(text))
        'de'
    """
    if not scripts:
        return UNKNOWN
    # Japanese is written with Chinese characters for the most part.
    if scripts["Kana"] > 0.05 * scripts.total():
        return "ja"
    most = max(scripts, key=lambda name: scripts[name])
    if most in _BY_SCRIPT:
        return _BY_SCRIPT[most]
    words = Counter(_WORD.findall(text.lower()))
    hits = {code: sum(words[word] for word in stop) for code, stop in STOP_WORDS.items()}
    best = max(hits, key=lambda code: hits[code])
    return best if hits[best] >= LEAST_STOP_SHARE * max(1, words.total()) else UNKNOWN


@lru_cache(maxsize=1 << 17)
def _script(character: str) -> str:
    """Return the script of a letter or a sign that belongs to one; empty for digits, punctuation and white space."""
    place = bisect_right(_STARTS, ord(character)) - 1
    name = _NAMES[place] if place >= 0 else OTHER
    if name == OTHER:
        return OTHER if character.isalpha() else ""
    # Digits and punctuation have blocks of scripts as well.
    return name if character.isalpha() or not (character.isdigit() or character.isspace()) else ""


def _known(noun: str, names: tuple[str, ...], legal: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in legal:
            raise ValueError(unknown(noun, name, legal))
    return names
