"""TensorBoard: event files, also live. Its relative time is time of training."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workbench.bridges.bridge import Bridge, Sent, recipe_text, scores_of
from workbench.bridges.source import Row, began, flat
from workbench.store.folder import RunFolder
from workbench.store.view import RunView
from workbench.telemetry.quantities import PER_LAYER, Quantity, scalar
from workbench.telemetry.streams import read_events

_STRING = 7  # DT_STRING of TensorFlow's types.proto


class TensorBoard(Bridge):
    """A folder per run in which each call writes one event file: TensorBoard reads them as one run."""

    needs, extra = ("tensorboard",), "tensorboard"

    def __init__(self, folder: Path, run: RunFolder, view: RunView, sent: Sent) -> None:
        super().__init__(folder, run, view, sent)
        from tensorboard.compat.proto import event_pb2, summary_pb2
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._proto, self._summary = event_pb2, summary_pb2.Summary
        self._metadata, self._described = summary_pb2.SummaryMetadata, set[str]()
        # A short queue would hand over the interpreter for every event.
        self._writer = EventFileWriter(str(folder / view.id), max_queue_size=1000, flush_secs=3600)
        if not sent.own:
            sent.own["began"] = began(run)
            self._begin()

    def add(self, rows: Iterator[Row]) -> int:
        """Write an event per row."""
        count = 0
        for row in self.fresh(rows):
            count += len(row.values)
            self._write(row.step, row.time, [self._scalar(name, value) for name, value in row.values.items()])
        self._writer.flush()
        return count

    def rewind(self, step: int) -> None:
        """Have TensorBoard forget the steps after this one, as it does when any trainer restarts."""
        if max(self.sent.last.values(), default=-1) > step:
            self.sent.cut(step)
            start = self._proto.SessionLog(status=self._proto.SessionLog.START)
            self._writer.add_event(self._proto.Event(wall_time=time.time(), step=step + 1, session_log=start))

    def end(self, view: RunView) -> None:
        """Write scores, and events as texts."""
        for row in self.fresh(scores_of(view)):
            self._write(row.step, time.time(), [self._scalar(name, value) for name, value in row.values.items()])
        events = read_events(self.run.telemetry)
        for event in events[self.sent.events :]:
            self._write(event["step"], event.get("time", 0.0), [self._text(f"events/{event['kind']}", event["text"])])
        self.sent.events = len(events)
        self._writer.close()

    def _begin(self) -> None:
        from tensorboard.plugins.hparams.summary_v2 import hparams_pb

        self._write(0, self.sent.own["began"], [self._text("recipe", f"```json\n{recipe_text(self.view)}\n```")])
        knobs = hparams_pb(flat(self.view.recipe), trial_id=self.view.id, start_time_secs=self.sent.own["began"])
        self._writer.add_event(self._proto.Event(step=0, wall_time=time.time(), summary=knobs))

    def _scalar(self, name: str, value: float) -> Any:
        found = self._summary.Value(tag=name, simple_value=value)
        # Once per file: TensorBoard keeps what it saw first.
        if name not in self._described:
            self._described.add(name)
            title, help_text = _described(name)
            found.metadata.plugin_data.plugin_name = "scalars"
            found.metadata.display_name, found.metadata.summary_description = title, help_text
        return found

    def _text(self, tag: str, text: str) -> Any:
        found = self._summary.Value(tag=tag)
        found.metadata.plugin_data.plugin_name = "text"
        found.tensor.dtype = _STRING
        found.tensor.tensor_shape.dim.add(size=1)
        found.tensor.string_val.append(text.encode())
        return found

    def _write(self, step: int, wall_time: float, values: list[Any]) -> None:
        summary = self._summary(value=values)
        self._writer.add_event(self._proto.Event(step=step, wall_time=wall_time, summary=summary))

    @property
    def opened_by(self) -> str:
        """TensorBoard on the folder, with all runs in it."""
        return f"tensorboard --logdir {self.folder}"


def _described(name: str) -> tuple[str, str]:
    """Return title and help of a series."""
    quantity: Quantity | None
    if name.startswith("layer_"):
        of, _, layer = name.removeprefix("layer_").partition("/")
        quantity = PER_LAYER.get(of)
        return (f"{quantity.label} of layer {int(layer)}", quantity.help) if quantity else (name, "")
    quantity = scalar(name)
    return quantity.label, quantity.help
