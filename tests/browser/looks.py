"""What can be asserted of a page's looks: nothing sticks out, no words are cut, every control has a name.

What a test has done shows a few frames later, on a busy machine much later: what Playwright's ``expect`` cannot say is
read until it is so (:func:`soon`) or changes no more (:func:`still`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from playwright.sync_api import Locator, Page, expect

from tests.browser.axe import ROOTS

SCROLLING = "table, pre, .wb-sheet, .lab-runs, .lab-card, .lab-card *, .wb-events"
"""What may be wider than its box, which then scrolls by itself and is reached with the keyboard."""

PATIENCE_SECONDS = 60.0
T = TypeVar("T")

_FRAMES = """() => new Promise(done => {
    const frame = left => left ? requestAnimationFrame(() => frame(left - 1)) : setTimeout(done, 30);
    frame(3);
})"""
_WHOLE_IN = """(one, around) => {
    const [inner, outer] = [one, one.closest(around)].map((each) => each.getBoundingClientRect());
    return inner.height > 0 && inner.top >= outer.top && inner.bottom <= outer.bottom;
}"""
_PARTS_CUT = """name => {
    const narrow = name.cloneNode(true), words = ["a rather long name of a run", " · lr 0.002"];
    narrow.style.width = "110px";
    [...narrow.children].forEach((part, i) => { part.textContent = words[i]; });
    name.after(narrow);
    const cut = [...narrow.children].map((part) => part.scrollWidth > part.clientWidth);
    narrow.remove();
    return cut;
}"""
_UNFIT = (Path(__file__).parent / "unfit.js").read_text(encoding="utf-8").rstrip(";\n")


def soon(read: Callable[[], T], wanted: T | Callable[[T], bool]) -> T:
    """Read the page until what it shows is what is wanted, or fits; returns it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = read()
        if wanted(found) if callable(wanted) else found == wanted:
            return found
        assert time.monotonic() < deadline, f"the page still shows {found!r}"
        time.sleep(0.05)


def still(page: Page, read: Callable[[], T]) -> T:
    """Read the page until some frames later it shows the same."""
    last = read()
    for _ in range(100):
        page.evaluate(_FRAMES)
        if (now := read()) == last:
            return now
        last = now
    raise AssertionError(f"the page does not come to rest: {last!r}")


def unfit(page: Page) -> list[str]:
    """Say what of ours sticks out, scrolls sideways or is cut."""
    found: list[str] = page.evaluate(_UNFIT, [", ".join(ROOTS), SCROLLING])
    return found


def drawn_pixels(monitor: Locator, plot: int = 0) -> int:
    """Coloured pixels of a plot: axes, grid and levels are grey, so only a curve has any."""
    return int(
        monitor.locator(".wb-area canvas")
        .nth(plot)
        .evaluate(
            """canvas => {
                // Of a copy: Chromium warns of a canvas that is drawn for the eye and read more than once.
                const read = {willReadFrequently: true};
                const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", read);
                copy.drawImage(canvas, 0, 0);
                const {data} = copy.getImageData(0, 0, canvas.width, canvas.height);
                let coloured = 0;
                for (let i = 0; i < data.length; i += 4) {
                    const [r, g, b, a] = data.subarray(i, i + 4);
                    if (a > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 60) coloured++;
                }
                return coloured;
            }"""
        )
    )


def expect_curve(monitor: Locator, pixels: int = 100) -> None:
    """Until the first plot shows more than ``pixels`` of curves."""
    soon(lambda: drawn_pixels(monitor), lambda count: count > pixels)


def expect_picture(picture: Locator, width: int = 300) -> None:
    """Until an image is seen and has more than ``width`` pixels of its own from left to right."""
    expect(picture).to_be_visible()
    soon(lambda: picture.evaluate("image => image.naturalWidth"), lambda found: found > width)


def controls(page: Page, root: str) -> list[tuple[str, str]]:
    """Role and name, as a screen reader would say them, of everything in ``root`` that takes the focus."""
    session = page.context.new_cdp_session(page)
    document = session.send("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
    node = session.send("DOM.querySelector", {"nodeId": document, "selector": root})["nodeId"]
    tree = session.send("Accessibility.queryAXTree", {"nodeId": node})["nodes"]
    session.detach()
    return [(_value(n, "role"), _value(n, "name")) for n in tree if not n.get("ignored") and _focusable(n)]


def _focusable(node: dict[str, Any]) -> bool:
    return any(p["name"] == "focusable" and p["value"].get("value") for p in node.get("properties", []))


def _value(node: dict[str, Any], key: str) -> str:
    return str(node.get(key, {}).get("value", "")).strip()


def parts_cut(name: Locator) -> list[bool]:
    """Return, for both parts of a run's name, if they are cut where there is little room."""
    cut: list[bool] = name.evaluate(_PARTS_CUT)
    return cut


def whole_in(one: Locator, around: str) -> bool:
    """Return True if the element around it cuts nothing of it off."""
    return bool(one.evaluate(_WHOLE_IN, around))
