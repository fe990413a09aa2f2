"""Watching runs: the live view and what feeds it."""
