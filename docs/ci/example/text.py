"""Write text.txt, on which the example's recipes train; a repository of yours has text of its own."""

from pathlib import Path

THINGS = ("lamp", "kettle", "ladder", "basket", "mirror", "candle", "pillow", "hammer")
PLACES = ("kitchen", "garden", "cellar", "attic", "hall", "garage", "stable", "library")

lines = [
    f"The {THINGS[i % 8]} stands in the {PLACES[(i % 8 * 3 + 1) % 8]}, and number {i * 7 % 97} is written below it.\n\n"
    for i in range(4000)
]
Path("text.txt").write_text("".join(lines), encoding="utf-8")
