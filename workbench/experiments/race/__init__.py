"""Races: recipes against a baseline over paired seeds, at equal budgets, until the difference is known."""
