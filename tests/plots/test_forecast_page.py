"""The forecast's HTML: every number that was promised, nothing unescaped, errors in words."""

from __future__ import annotations

import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from workbench.plots.forecast_compared import Compared, compared
from workbench.plots.forecast_page import comparison_html, details_html, forecast_html, headline_html, line_html

from .ahead import FOUND, GIB


class Balanced(HTMLParser):
    """Complains about tags that are not closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attributes: object) -> None:
        self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(text: str) -> str:
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    return text


def words(text: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", text).split())


def test_the_headline_has_the_numbers() -> None:
    said = words(checked(headline_html(FOUND)))
    for part in (
        "training time 1 min 40 s 1 min 20 s to 2 min 5 s", "8,192 tokens/s",
        "memory for training 1.5 GiB 9% of 16.0 GiB",
        "819,200 in all", "steps 200 4,096 tokens each", "parameters 4.20M trained", "FLOPs 2.0e13 2.5e7 per token",
    ):  # fmt: skip
        assert part in said, part
    assert "cost" not in said
    assert "cost 0.10 0.08 to 0.12" in words(headline_html(FOUND, 3.6))
    assert "cost 0 at 0 per hour" in words(headline_html(FOUND, 0.0))


def test_a_steps_tokens_are_those_of_a_step_and_no_mean() -> None:
    """A budget in seconds ends within a step: tokens over steps would be less than any step has."""
    within = {**FOUND, "steps": 201}
    assert "steps 201 4,096 tokens each" in words(headline_html(within))
    ramp = {**FOUND["schedules"], "data.batch_size": [8.0, 16.0, 32.0, 64.0, 64.0]}
    assert "steps 200 1,024 to 8,192 tokens each" in words(headline_html({**FOUND, "schedules": ramp}))


def test_a_small_share_of_the_memory_is_not_nothing() -> None:
    said = words(headline_html(FOUND | {"memory_bytes": 103 * 2**20}))
    assert "103 MiB under 1% of 16.0 GiB" in said


def test_the_line_says_the_same() -> None:
    assert words(checked(line_html(FOUND, 3.6))) == (
        "2 min 20 s to the end with compiling, 1 min 40 s (1 min 20 s to 2 min 5 s) of training · 8,192 tokens/s · "
        "1.5 GiB of 16.0 GiB of memory · cost 0.10 "
        "from speeds measured on the machine; compiling adds about 40 s the first time, with a core to itself"
    )
    shared = words(line_html({**FOUND, "provisional": "until it is <measured>"}, sharing=1))
    assert shared.endswith(
        "1 run trains on it now; compiling adds about 40 s the first time, with a core to itself; "
        "until it is &lt;measured&gt;"
    )
    # A small box shows all of what is wrong, and no number runs into its words.
    wrong = words(line_html({**FOUND, "memory_bytes": 20 * GIB}))
    assert wrong.startswith("This does not fit: it needs 20.0 GiB, the device has 16.0 GiB. Lower ")
    assert wrong.endswith("data.sequence_length or the model.")
    brief = words(line_html({**FOUND, "provisional": "until then"}, sharing=1, brief=True))
    assert brief == "2 min 20 s to the end · 8,192 tokens/s"
    assert "does not fit" in line_html({**FOUND, "memory_bytes": 20 * GIB}, brief=True)
    refused = {**FOUND, "refusal": "expected to be refused at its start: a pass of <1 row>"}
    for text in (line_html(refused), headline_html(refused)):
        assert "This run is expected to be refused at its start: a pass of &lt;1 row&gt;" in checked(text)


def test_a_budget_in_seconds_has_no_band() -> None:
    kept = {**FOUND, "seconds_low": 100.0, "seconds_high": 100.0}
    assert "1 min 40 s as the budget says" in words(headline_html(kept, 2.0))


def test_what_does_not_fit_is_said_with_the_way_out() -> None:
    text = checked(headline_html({**FOUND, "memory_bytes": 20 * GIB}))
    assert "needs 20.0 GiB, the device has 16.0 GiB" in words(text)
    assert 'role="alert"' in text
    assert "execution.micro_batch_size" in text
    assert "wb-over" in details_html({**FOUND, "memory_bytes": 20 * GIB})


def test_details_have_pictures_and_the_same_in_words() -> None:
    text = checked(details_html(FOUND))
    assert re.findall(r'<svg class="(wb-[a-z-]+)"', text) == [
        "wb-memory-bar", "wb-gauge", "wb-spark", "wb-spark", "wb-layer-map",
    ]  # fmt: skip
    said = words(text)
    assert "learning rate 0.001 → 0.003 → 0" in said
    assert "mask rate (%) 30 → 15" in said
    assert "80% of the layers compute forward, 50% forward and backward" in said
    assert "&lt;training&gt;" in text
    assert "optimizer 512 MiB" in said
    assert "from rates of a machine that never was, measured on 2026-01-01" in said
    earlier = {name: value for name, value in FOUND.items() if name not in ("compile_seconds", "machine", "notes")}
    assert "compiling" not in line_html(earlier)
    everything = {"forward": [[1.0]], "backward": [[1.0]]}
    assert "every layer computes and trains" in details_html({**FOUND, "layers": everything})


def test_names_and_notes_are_data() -> None:
    evil = "<img src=x onerror=y>"
    schedules = {"progress": [0.0, 1.0], evil: [0.0, 1.0]}
    text = forecast_html({**FOUND, "notes": [evil], "schedules": schedules, "memory": {evil: 5}})
    text += comparison_html([Compared(evil, evil, evil, 0.1, evil)], evil)
    assert "<img" not in checked(text)
    assert text.count("&lt;img") >= 6


def test_the_comparison_marks_what_is_far_off(view) -> None:
    text = checked(comparison_html(compared({**FOUND, "tokens_per_second": 16_000.0}, view), view.name))
    assert re.search(r'class="wb-far">50%', text)
    assert re.search(r'class="wb-near">as forecast', text)
    assert "synthetic: forecast (from speeds measured on the machine) and measured" in words(text)


@pytest.mark.parametrize("heavy", ["plotly", "matplotlib", "torch", "ipywidgets"])
@pytest.mark.process
def test_it_is_light(heavy: str) -> None:
    code = f"import workbench.plots.forecast_page, sys; print({heavy!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"
