"""runs/launchers."""
