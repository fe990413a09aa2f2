"""Tuning: a stepwise sweep finds a recipe on text and seeds of its own, and a race says what it is worth."""
