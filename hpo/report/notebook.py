"""Tuners and jobs in a notebook: small HTML without scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hpo.record import Store, is_training
from hpo.report.data import JobData
from hpo.report.page import (
    Column,
    Table,
    cells_of,
    subtitle,
    template,
    training_subtitle,
    training_verdict,
    verdict,
)
from hpo.strategies import Plan
from hpo.text import places, range_text, short

BEST = 10
"""Trials that are shown."""


def job_html(name: str, url: str | None = None) -> str:
    """A job of the record: its verdict and its best trials.

    Args:
        name: the job's.
        url: the database of its record; None is the default one.
    """
    with Store(url) as store:
        data = JobData.read(store, name)
    if is_training(data.job):
        return _html(data.title, training_subtitle(data), [training_verdict(data)], [])
    texts = [verdict(data)]
    tables = [_best(data)] if data.trials else []
    if len(data.trials) > BEST:
        texts.append(f"The best {BEST} of {len(data.trials)} trials:")
    return _html(data.title, subtitle(data), texts, tables)


def plan_html(title: str, aim: str, plan: Plan, ranges: Mapping[str, Mapping[str, Any]]) -> str:
    """A search before it starts.

    Args:
        title: what it is.
        aim: what it is after, in a sentence.
        plan: its brackets.
        ranges: the tuned hyperparameters, in the form that the record keeps.
    """
    brackets = [
        [
            number,
            "  →  ".join(f"{size} to {rung}" for rung, size in zip(each.rungs, each.sizes, strict=True)),
            each.resource,
        ]
        for number, each in enumerate(plan.brackets, start=1)
    ]
    most = f"At most {plan.resource:,} of the {plan.full_resource:,} units of {plan.trials} full trials."
    tables = [
        Table(["hyperparameter", "range"], [[name, range_text(bounds)] for name, bounds in ranges.items()]),
        Table(["bracket", "trials at each rung", "units"], brackets),
    ]
    return _html(title, "", [aim, most], tables)


def _best(data: JobData) -> Table:
    trials = data.ranked()[:BEST]
    scores = [score for trial in trials if (score := data.objective(trial)) is not None]
    rows = [
        [
            trial.trial_id,
            trial.status,
            data.objective(trial),
            trial.resource,
            ", ".join(f"{name}={short(value)}" for name, value in trial.hyperparameters.items()),
        ]
        for trial in trials
    ]
    return Table(["trial", "status", Column(data.metric, places(*scores)), f"{data.unit}s", "hyperparameters"], rows)


def _html(title: str, subtitle: str, texts: Iterable[str], tables: Iterable[Table]) -> str:
    shown = []
    for table in tables:
        columns, rows = cells_of(table)
        shown.append((table.caption, [column.title for column in columns], rows))
    return template("notebook.html").render(title=title, subtitle=subtitle, texts=texts, tables=shown)
