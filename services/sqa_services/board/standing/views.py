"""Views: weights of data sets and metrics, with a name and a version.

The first data set of a task creates the view "main".  Later data sets affect the headline only in a new version of the
view.  Earlier versions remain available.
"""

import time
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, func, insert, select

from sqa.core.errors import ConfigError
from sqa_services.board.storage import DATASETS, VIEWS
from sqa_services.board.task import Task, check_name

MAIN = "main"


View = dict[str, Any]  # name, version, created, datasets and metrics (name -> positive weight)


def views(connection: Connection, code: str) -> list[View]:
    """Return all versions of a task's views, oldest first."""
    columns = (VIEWS.c.name, VIEWS.c.version, VIEWS.c.created, VIEWS.c.datasets, VIEWS.c.metrics)
    rows = connection.execute(select(*columns).where(VIEWS.c.task == code).order_by(VIEWS.c.id))
    return [dict(row) for row in rows.mappings()]


def find_view(connection: Connection, code: str, name: str = MAIN, version: int | None = None) -> View | None:
    """Return a version of a view, by default the newest, or None if it does not exist."""
    versions = [v for v in views(connection, code) if v["name"] == name and version in (None, v["version"])]
    return versions[-1] if versions else None


def add_view(
    connection: Connection, task: Task, name: str, datasets: Mapping[str, float], metrics: Mapping[str, float]
) -> View:
    """Add the next version of a view.

    Raises ConfigError with all unknown names and all weights that are not positive.
    """
    check_name(name, "view")
    registered = connection.execute(select(DATASETS.c.name).where(DATASETS.c.task == task.code)).scalars().all()
    unknown = [dataset for dataset in datasets if dataset not in registered]
    wrong = [f"view: no data set {dataset!r}; known: {', '.join(registered)}" for dataset in unknown]
    wrong += [f"view: no metric {metric!r}" for metric in metrics if metric not in task.metrics]
    weights: list[tuple[str, Any]] = [*datasets.items(), *metrics.items()]
    wrong += [f"view: {item}: a weight must be above 0, got {weight}" for item, weight in weights if not weight > 0]
    if not datasets or not metrics:
        wrong.append("view: name at least one data set and one metric")
    if wrong:
        raise ConfigError(wrong)
    newest = select(func.max(VIEWS.c.version)).where(VIEWS.c.task == task.code, VIEWS.c.name == name)
    version = (connection.execute(newest).scalar_one() or 0) + 1
    weighed = {"datasets": dict(datasets), "metrics": dict(metrics)}
    view = {"name": name, "version": version, "created": time.time(), **weighed}
    connection.execute(insert(VIEWS).values(task=task.code, **view))
    return view


def ensure_main(connection: Connection, task: Task) -> None:
    """Create the view "main" of a task without one, with equal weights of data sets and the task's weights of metrics.

    Metrics of perturbed copies that a data set lacks get no weight, since no model would have them.
    """
    rows = connection.execute(select(DATASETS.c.name, DATASETS.c.prefixes).where(DATASETS.c.task == task.code)).all()
    if rows and find_view(connection, task.code) is None:
        lacking = {delta for delta in task.delta_metrics for row in rows if delta not in row.prefixes}
        metrics = {name: weight for name, weight in task.default_weights.items() if name not in lacking}
        add_view(connection, task, MAIN, {row.name: 1.0 for row in rows}, metrics or {task.perf_metric: 1.0})
