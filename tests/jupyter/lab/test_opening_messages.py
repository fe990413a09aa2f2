"""What an opening Lab sends, counted: each message takes kernel, server and page some time, and there were 862."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import ipywidgets
import pytest

from tests.jupyter.messages import published
from workbench import presets
from workbench.jupyter.lab.lab import Lab

# As measured, and a few more: a knob is up to four models, of which each is one message.
MODELS, MESSAGES, KILOBYTES = 210, 225, 600


def test_an_opening_lab_sends_what_it_shows_and_each_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = published(monkeypatch)
    lab = Lab(presets.get("fast"), runs_dir=tmp_path, live=True)
    try:
        assert len(sent.models) < MODELS, Counter(sent.models).most_common()
        assert len(sent) < MESSAGES
        assert len(json.dumps(sent, default=str)) < 1000 * KILOBYTES
        before = len(sent.models)
        sections = {section.name: section for section in lab.composer.sections}
        knob = lab.composer.axes["data"].widget
        assert knob.comm is None, "a closed section"
        sections["data"].toggle.value = True
        assert knob.comm is not None
        assert 10 < len(sent.models) - before < 120
        opened = len(sent.models)
        for value in (False, True):
            sections["data"].toggle.value = value
        assert len(sent.models) == opened, "opened again, it is there"
    finally:
        lab.close()


def test_a_closed_section_is_right_when_it_is_opened(tmp_path: Path) -> None:
    """Undo, a pasted recipe, a search and a problem reach knobs that no page has seen."""
    lab = Lab(presets.get("fast"), runs_dir=tmp_path, live=True)
    try:
        composer = lab.composer
        sections = {section.name: section for section in composer.sections}
        data, execution = (composer.axes[axis].part.knobs for axis in ("data", "execution"))
        length, threads, rows = data["sequence_length"], execution["threads"], execution["micro_batch_size"]
        fields = composer.fields
        composer.enter({**fields, "data": {**fields["data"], "sequence_length": 32}})
        assert (length.value, length.widget.comm) == (32, None), "pasted"
        composer.undo()
        assert sections["data"].toggle.value, "what was undone is shown"
        assert length.widget.comm is not None
        assert length.value == fields["data"]["sequence_length"]
        composer.finder.text.value = "threads"
        assert threads.widget.comm is not None, "found"
        assert rows.widget.comm is None
        composer.finder.clear()
        assert not sections["execution"].toggle.value
        composer.enter({**fields, "execution": {**fields["execution"], "micro_batch_size": -1}})
        assert sections["execution"].toggle.value, "what is wrong is shown"
        line = rows.widget.children[-1]
        assert isinstance(line, ipywidgets.HTML)
        assert line.value
        assert line.comm is not None
    finally:
        lab.close()
