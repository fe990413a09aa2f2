"""What can be asserted of a page's looks: nothing sticks out, no words are cut, every control has a name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page

from tests.browser.axe import ROOTS

SCROLLING = "table, pre, .wb-sheet, .lab-runs, .lab-card, .lab-card *, .wb-events"
"""What may be wider than its box, which then scrolls by itself and is reached with the keyboard."""

_UNFIT = (Path(__file__).parent / "unfit.js").read_text(encoding="utf-8").rstrip(";\n")


def unfit(page: Page) -> list[str]:
    """What of ours sticks out, scrolls sideways or is cut, in words."""
    found: list[str] = page.evaluate(_UNFIT, [", ".join(ROOTS), SCROLLING])
    return found


def drawn_pixels(monitor: Locator, plot: int = 0) -> int:
    """Coloured pixels of a plot: axes, grid and levels are grey, so only a curve has any."""
    return int(
        monitor.locator(".wb-area canvas")
        .nth(plot)
        .evaluate(
            """canvas => {
                const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
                let coloured = 0;
                for (let i = 0; i < data.length; i += 4) {
                    const [r, g, b, a] = data.subarray(i, i + 4);
                    if (a > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 60) coloured++;
                }
                return coloured;
            }"""
        )
    )


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
