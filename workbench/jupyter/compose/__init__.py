"""Composing a recipe: forms, text, differences, the forecast beside them."""
