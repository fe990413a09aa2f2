"""Recipes: compositions of choices, presets, changes, recipes as code."""
