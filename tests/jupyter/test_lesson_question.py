"""A question of a lesson in a real kernel: asked in a page, still under papermill, answered by its button."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.jupyter.kernel import Kernel, live_kernel

VIEW = "application/vnd.jupyter.widget-view+json"
ASK = 'lesson.predict("which", "Which has learned?", options=["A", "B"])'


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with live_kernel(tmp_path_factory.mktemp("kernel")) as kernel:
        kernel.run("import workbench as wb\nlesson = wb.Lesson('did_it_learn', learner='ada')")
        yield kernel


def shown(messages: list[dict[str, Any]], kind: str = "display_data") -> list[dict[str, Any]]:
    return [message["content"]["data"] for message in messages if message["msg_type"] == kind]


def test_a_question_becomes_its_answer(kernel: Kernel) -> None:
    (still,) = shown(kernel.run(ASK, page=False))
    assert VIEW not in still
    assert "not committed yet: A, B" in still["text/html"]
    (live,) = shown(kernel.run(ASK, cell="predict"))
    assert VIEW in live
    assert "not committed yet: A, B" in live["text/html"]
    assert "Where JupyterLab shows this line, install workbench" in live["text/html"], "a page without our extension"
    press = (
        "from workbench.jupyter.lesson_question import QuestionView\nimport gc\n"
        "view = next(o for o in gc.get_objects() if isinstance(o, QuestionView))\n"
    )
    kernel.run(f"{press}view.button.click()")
    assert "Choose one first" in kernel.value("view.said.value")
    replaced = shown(kernel.run("view.field.value = 'B'\nview.button.click()"), "update_display_data")
    assert [VIEW in each for each in replaced] == [False]
    assert "your prediction: B, committed at" in replaced[0]["text/html"]
    # For a page that was loaded again, which cannot be told to replace an output.
    assert "your prediction: B" in kernel.value("view.children[1].value")
    (after,) = shown(kernel.run(ASK, cell="predict"))
    assert VIEW not in after
    assert "your prediction: B" in after["text/plain"]


def test_a_wrong_answer_is_met_with_a_hint(kernel: Kernel) -> None:
    kernel.run('lesson.check("q", "Q?", options=["A", "B"], answer="B", hints=["Look <up>."])', cell="check")
    kernel.run("view = next(o for o in gc.get_objects() if isinstance(o, QuestionView) and not o.has_left)")
    kernel.run("view.field.value = 'A'\nview.button.click()")
    assert kernel.value("view.said.value") == "<span role='alert'>Not “A”. Look &lt;up&gt;.</span>"
    (done,) = shown(kernel.run("view.field.value = 'B'\nview.button.click()"), "update_display_data")
    assert "B: right, second answer" in done["text/plain"]
