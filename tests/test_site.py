"""The site: every page of the repository is in it, and a broken link fails its build."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import ROOT

SITE = ROOT / "docs" / "site.py"


@pytest.mark.extended
@pytest.mark.process
def test_the_site_is_built_with_every_card_and_notebook(tmp_path: Path) -> None:
    pytest.importorskip("myst_nb", reason="the site needs `pip install -e '.[docs]'`")
    done = subprocess.run(
        [sys.executable, str(SITE), "--notebooks", "off", "--out", str(tmp_path)],
        capture_output=True, text=True, check=False, timeout=570,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    cards = [card.relative_to(ROOT) for card in (ROOT / "workbench" / "choices").rglob("*.md")]
    notebooks = [path.relative_to(ROOT) for path in (ROOT / "notebooks").glob("*.ipynb")]
    assert len(cards) > 50
    assert len(notebooks) > 10
    assert [page for page in [*cards, *notebooks] if not (tmp_path / page.with_suffix(".html")).exists()] == []
    reference = (tmp_path / "reference.html").read_text(encoding="utf-8")
    assert 'id="workbench.launch"' in reference
    assert "Type<" not in reference, "a colon in an attribute's docstring makes a type of what stands before it"
    assert (tmp_path / "searchindex.js").stat().st_size > 100_000


def test_every_page_of_the_site_is_led_to() -> None:
    pages = ROOT / "docs" / "site"
    index = (pages / "index.md").read_text(encoding="utf-8").splitlines()
    assert [page.stem for page in pages.glob("*.md") if page.stem != "index" and page.stem not in index] == []
