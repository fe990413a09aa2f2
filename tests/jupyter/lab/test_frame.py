"""The Lab's frame: it names the regions that the Lab really has, and brings the layout for both widths."""

from __future__ import annotations

import re
from pathlib import Path

from workbench import presets
from workbench.jupyter.lab.frame import Frame
from workbench.jupyter.lab.lab import Lab


def test_every_region_it_names_is_in_the_lab(tmp_path: Path) -> None:
    frame = Frame()
    named = re.findall(r'\["(lab-[a-z]+)","[A-Z]', frame._code)
    assert named == ["lab-compose", "lab-watch", "lab-below"]
    lab = Lab(presets.get("fast"), runs_dir=tmp_path / "absent")
    (body,) = (part for part in lab.children if "lab-body" in part._dom_classes)
    assert [next(name for name in part._dom_classes if name in named) for part in body.children] == named
    for name in (*named, "lab-body", "lab-border-left", "lab-border-top"):
        assert f".{name}" in frame._css
    assert "@container lab" in frame._css
    lab.close()
    frame.close()
