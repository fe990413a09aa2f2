"""Who runs a cell: a page, papermill, or Voila, which executes like papermill and then draws; in a real kernel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.jupyter.kernel import Kernel, live_kernel
from workbench.jupyter.headless import headless

ASK = "from workbench.jupyter.headless import headless\nprint(headless())"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with live_kernel(tmp_path_factory.mktemp("kernel")) as kernel:
        yield kernel


def said(kernel: Kernel, code: str, page: bool) -> str:
    return "".join(m["content"]["text"] for m in kernel.run(code, page=page) if m["msg_type"] == "stream").strip()


def test_a_client_that_can_answer_is_a_page(kernel: Kernel) -> None:
    assert said(kernel, ASK, page=True) == "False"
    assert said(kernel, ASK, page=False) == "True"


def test_voila_is_a_page(kernel: Kernel) -> None:
    name = "import os\nos.environ['SERVER_SOFTWARE'] = 'voila/0.5.8'\n"
    assert said(kernel, name + ASK, page=False) == "False"


def test_a_script_is_none() -> None:
    assert headless() is False
