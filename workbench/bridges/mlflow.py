"""MLflow: a local database, as `mlflow ui` makes one. No server is started."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

from workbench.bridges.bridge import Bridge, Sent, recipe_text, scores_of
from workbench.bridges.source import Row, began, flat
from workbench.store.folder import RunFolder
from workbench.store.view import RunView

BATCH = 1000
"""Values per call, the most that MLflow takes: a call costs tens of milliseconds, however few there are."""
_PARAMS, _LONGEST = 100, 6000
_STATUS = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED", "lost": "FAILED"}
_ODD = re.compile(r"[^\w\-. :/]", re.ASCII)


class Mlflow(Bridge):
    """One run of MLflow's experiment "workbench" for each run. (MLflow 3 refuses its older store of plain files.)"""

    needs, extra = ("mlflow", "sqlalchemy", "alembic"), "mlflow"

    def __init__(self, folder: Path, run: RunFolder, view: RunView, sent: Sent) -> None:
        super().__init__(folder, run, view, sent)
        from mlflow import MlflowClient
        from mlflow.entities import Metric

        self._client, self._metric = MlflowClient(self.uri), Metric
        if not sent.own:
            self._begin()

    @property
    def uri(self) -> str:
        """MLflow's address of the folder."""
        return f"sqlite:///{self.folder / 'mlflow.db'}"

    def add(self, rows: Iterator[Row]) -> int:
        """Write values in batches of :data:`BATCH`."""
        metrics = (
            self._metric(_ODD.sub("-", name), value, round(1e3 * row.time), row.step)
            for row in self.fresh(rows)
            for name, value in row.values.items()
        )
        count = 0
        while batch := list(itertools.islice(metrics, BATCH)):
            self._client.log_batch(self.sent.own["run"], batch)
            count += len(batch)
        return count

    def end(self, view: RunView) -> None:
        """Write scores and how the run stands."""
        at = self.sent.own["began"] + float(view.state["seconds"])
        self.add(row._replace(time=at) for row in scores_of(view))
        if status := _STATUS.get(view.status):
            self._client.set_terminated(self.sent.own["run"], status, round(1e3 * at))
        else:
            self._client.update_run(self.sent.own["run"], "RUNNING")

    def _begin(self) -> None:
        from mlflow.entities import Param

        found = self._client.get_experiment_by_name("workbench")
        where = (self.folder / "artifacts").as_uri()
        experiment = found.experiment_id if found else self._client.create_experiment("workbench", where)
        start = began(self.run)
        tags = {"workbench.run": self.view.id, "mlflow.note.content": self.view.labels.notes}
        tags |= {f"workbench.tag.{_ODD.sub('-', tag)}": "yes" for tag in self.view.labels.tags}
        made = self._client.create_run(experiment, round(1e3 * start), tags, self.view.name).info.run_id
        knobs = [Param(name, str(value)[:_LONGEST]) for name, value in flat(self.view.recipe).items()]
        for at in range(0, len(knobs), _PARAMS):
            self._client.log_batch(made, params=knobs[at : at + _PARAMS])
        self._client.log_text(made, recipe_text(self.view), "recipe.json")
        self.sent.own |= {"run": made, "began": start}

    @property
    def opened_by(self) -> str:
        """MLflow's page on this database."""
        return f"mlflow ui --backend-store-uri {self.uri}"
