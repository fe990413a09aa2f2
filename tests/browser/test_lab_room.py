"""In the narrow column of the forms: what decides whether to launch, and what was chosen, is in sight at any time."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import RESULTS
from tests.browser.jupyter import Notebook, write_notebook
from tests.browser.looks import soon, whole_in
from tests.browser.servers import Server

pytestmark = pytest.mark.browser
SCREENS = ((1440, 900), (1280, 720))
_TOLD = "recipe of baseline seed 0 of steered against quickstart"
_CELLS = [
    "import workbench as wb\nlab = wb.Lab()\nlab",
    # In bf16, in which the session knows the machine: while it is measured, nothing offers to measure it.
    "recipe = wb.presets.quickstart().with_(depth='progressive_drop', optimizer={'lr': 0.002})\n"
    f"lab._put(recipe.with_(execution={{'precision': 'bf16'}}), {_TOLD!r})",
    "lab.composer.show.value = 'JSON'\nlab.composer.show.value = 'Form'\n"
    "lab.forecast._offered_for_run = True\n"
    "from workbench.jupyter.compose.forecast_panel import _NO_FORECAST\n"
    "lab.forecast.beside.value = f\"<p class='wb-soft'>quickstart: {_NO_FORECAST}</p>\"\n"
    "lab.forecast._draw()",
    "lab.forecast.line.value = f\"<p>{'20 min, and once, reading the text and learning its tokens. ' * 6}</p>\"",
]
_FITS = """select => {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = getComputedStyle(select).font;
    const style = getComputedStyle(select);
    const room = select.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return pen.measureText(select.selectedOptions[0].text).width <= room;
}"""


@pytest.mark.extended
def test_what_decides_is_in_sight(page: Page, server: Server) -> None:
    write_notebook(server.root / "room.ipynb", _CELLS)
    notebook = Notebook(page, server, "room.ipynb")
    notebook.hide_sidebar()
    notebook.run(0)
    expect(page.locator(".lab-composer")).to_be_visible()
    notebook.run(1)
    expect(page.locator(".lab-launching .lab-verdict")).to_contain_text(_TOLD)
    expect(page.locator(".lab-forecast .wb-forecast-line")).to_contain_text("tokens/s", timeout=120_000)
    notebook.run(2)
    measure = page.get_by_role("button", name="Measure this machine")
    expect(measure).to_be_visible()
    for width, height in SCREENS:
        page.set_viewport_size({"width": width, "height": height})
        page.locator(".lab-whole").evaluate("lab => lab.scrollIntoView()")
        page.screenshot(path=RESULTS / f"lab-room-{width}.png")
        for one in (page.locator(".lab-launching .lab-good"), page.locator(".lab-launching .lab-all")):
            soon(lambda one=one: whole_in(one, ".lab-launching"), True)  # type: ignore[misc]
        soon(lambda: whole_in(measure, ".lab-forecast"), True)
        assert whole_in(page.locator(".lab-forecast .wb-forecast-beside p"), ".lab-forecast")
        heading = page.locator(".lab-heading", has=page.get_by_role("button", name="Depth"))
        assert heading.locator("select").evaluate(_FITS), "progressive_drop"
    notebook.run(3)
    box = page.locator(".lab-forecast")
    soon(lambda: box.evaluate("box => box.scrollHeight - box.clientHeight"), lambda below: below > 15)
    page.locator(".lab-whole").evaluate("lab => lab.scrollIntoView()")
    page.screenshot(path=RESULTS / "lab-forecast-long.png")
    assert "linear-gradient" in box.evaluate("box => getComputedStyle(box).backgroundImage"), "a sign of more below"
