"""Messages of widgets are handled in the kernel's main thread, one after another, in the order in which they came.

JupyterLab sends what a page says to a second thread of the kernel (a subshell) from the moment that one has started,
and ipykernel sends each widget's messages to the thread that changed it last. Two threads then turn the same knobs:
what was picked first ends last, and a value that was typed after it is lost. Widgets are not made for two threads.
"""

from __future__ import annotations

import threading
from functools import wraps
from typing import Any

from IPython.core.getipython import get_ipython

_kernels: set[int] = set()


def keep_order() -> None:
    """Let the present kernel handle widgets' messages in its main thread; without a kernel nothing is done."""
    kernel: Any = getattr(get_ipython(), "kernel", None)
    handlers = getattr(kernel, "shell_handlers", {})
    if "comm_msg" not in handlers or id(kernel) in _kernels:
        return
    _kernels.add(id(kernel))
    _queue_in_one_line()
    handler = handlers["comm_msg"]

    @wraps(handler)
    def in_main_thread(*message: Any) -> Any:
        if threading.current_thread() is threading.main_thread():
            return handler(*message)
        # The loop runs it in this thread's context: what it publishes answers this message.
        return kernel.io_loop.add_callback(handler, *message)

    handlers["comm_msg"] = in_main_thread


def _queue_in_one_line() -> None:
    """Have all of them wait in the main thread's own queue.

    Handed over by another thread, one would overtake those that wait there while a cell or a slow answer is at work.
    ipykernel 7.4 asks each widget's comm which thread is to hear a message; before, nobody can be asked.
    """
    from ipykernel.comm.comm import BaseComm

    if hasattr(BaseComm, "_reply_subshell_for"):
        BaseComm._reply_subshell_for = lambda self, data, default: None  # type: ignore[method-assign]
