"""axe-core in the page: what it calls serious or critical inside our roots."""

from __future__ import annotations

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

ROOTS = (".lab-root", ".wb-monitor")
"""Everything of ours stands below one of these."""
GRAVE = ("serious", "critical")


def violations(page: Page, state: str) -> list[str]:
    """What a rule of axe finds wrong now.

    Args:
        page: shows at least one of :data:`ROOTS`.
        state: what the page shows, for the message.

    Returns:
        One line per element: state, impact, rule, element, and what axe says about it.
    """
    present = [root for root in ROOTS if page.locator(root).count()]
    context = {"include": [[root] for root in present]}
    found = Axe().run(page, context=context, options={"resultTypes": ["violations"]}).response
    return [
        f"{state}: {rule['impact']} {rule['id']}: {' '.join(map(str, node['target']))}: {node['failureSummary']}"
        for rule in found["violations"]
        if rule["impact"] in GRAVE
        for node in rule["nodes"]
    ]
