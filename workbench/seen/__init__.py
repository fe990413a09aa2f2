"""Rows as a run's model sees them, at any step, past or future; and where a run has read a text."""
