"""Choices, benchmarks and plots of other packages, found through the entry points that pip records."""

from __future__ import annotations

import functools
import importlib.metadata

from workbench.base.errors import RecipeError


# Once per process, and at the first look-up rather than at import: a plug-in imports the module that asks.
@functools.cache
def load_plugins(group: str) -> None:
    """Import every module that an entry point of a group names; it registers what is in it.

    Args:
        group: ``workbench.choices``, ``workbench.benchmarks`` or ``workbench.plots``.

    Raises:
        RecipeError: a module cannot be imported; names its package.
    """
    for entry in importlib.metadata.entry_points(group=group):
        try:
            entry.load()
        # Importing a stranger's module can raise anything; naming the package is what helps.
        except Exception as error:
            package = entry.dist.name if entry.dist else "(unknown)"
            raise RecipeError(
                f"entry point '{entry.name}' of package '{package}' cannot be loaded: {type(error).__name__}: {error}; "
                "repair or uninstall that package"
            ) from error
