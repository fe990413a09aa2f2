"""axe-core in the page: what it calls serious or critical inside our roots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

ROOTS = (".lab-root", ".wb-monitor")
"""Everything of ours stands below one of these."""
GRAVE = ("serious", "critical")
COLOURS = ("color-contrast", "link-in-text-block")
"""The rules of axe whose answer a theme can change."""


def violations(page: Page, state: str, rules: Sequence[str] | None = None, roots: Sequence[str] = ROOTS) -> list[str]:
    """Return what a rule of axe finds wrong now.

    Args:
        page: shows at least one of ``roots``.
        state: what the page shows, for the message.
        rules: of axe; all where None.
        roots: what is looked at: everything, or the part that a state has changed.

    Returns:
        One line per element: state, impact, rule, element, and what axe says about it.
    """
    present = [root for root in roots if page.locator(root).count()]
    context = {"include": [[root] for root in present]}
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules is not None:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    found = Axe().run(page, context=context, options=options).response
    return [
        f"{state}: {rule['impact']} {rule['id']}: {' '.join(map(str, node['target']))}: {node['failureSummary']}"
        for rule in found["violations"]
        if rule["impact"] in GRAVE
        for node in rule["nodes"]
    ]
