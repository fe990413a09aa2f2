"""The table of runs and what it may ask of them."""
