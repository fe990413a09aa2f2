"""The command line: the same verbs as in Python, headless. Nothing heavy is imported before a verb needs it."""

from workbench.cli.command import main

__all__ = ["main"]
