"""A page of several jobs side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from hpo.report.data import JobData
from hpo.report.figures import comparison_figures
from hpo.report.page.blocks import Column, Measured, Table
from hpo.report.page.conclusion import comparison, subtitle
from hpo.report.page.page import Page, Section
from hpo.text import count, places, short

NAMED = 3
"""A page of more jobs has their number as its title."""


def comparison_page(jobs: Sequence[JobData]) -> Page:
    """The page of two or more jobs, in the order in which they are given."""
    parts = [
        Section("Side by side", [_results(jobs), *_differences(jobs)], note=_same_rows(jobs)),
        Section("Pictures", comparison_figures(jobs)),
        Section("Configurations", [_configurations(jobs)]),
        Section("Data", [_data(jobs)]),
        Section("Jobs", [Table(["job", "what it is"], [[data.title, subtitle(data)] for data in jobs])]),
    ]
    title = " and ".join(data.title for data in jobs) if len(jobs) <= NAMED else count(len(jobs), "tuning job")
    together = f"{count(len(jobs), 'tuning job')} side by side"
    return Page(title, comparison(jobs), [part for part in parts if part.blocks], subtitle=together)


def _results(jobs: Sequence[JobData]) -> Table:
    """A row a job: what it found and what that took."""
    metrics = list(dict.fromkeys(data.metric for data in jobs))
    currency = next((cost["currency"] for data in jobs if (cost := data.job.summary.get("cost"))), None)
    rows: list[list[object]] = []
    for data in jobs:
        scores = [score for metric in metrics for score in (_pair(data) if data.metric == metric else (None, None))]
        used = data.used
        cost = data.job.summary.get("cost") or {}
        paid = [] if currency is None else [cost.get("total")]
        trials = f"{len(data.trials)} of {data.planned}"
        rows.append([data.title, data.status, *scores, trials, used, _billed(data), *paid, data.runtime])
    columns: list[Column | str] = ["job", Column("status", choose=True)]
    for metric in metrics:
        digits = _places(data for data in jobs if data.metric == metric)
        columns += [Column(f"{metric}, best", digits), Column("un-tuned", digits)]
    columns += ["trials", "units", Column("worker-seconds", 1)]
    columns += [] if currency is None else [currency or "money"]
    return Table([*columns, Column("wall time, s", 1)], rows)


def _differences(jobs: Sequence[JobData]) -> Iterator[Table]:
    """Each job against the first."""
    first, *others = jobs
    rows: list[list[object]] = []
    for data in others:
        gap = _change(first, data) if _aim(first) == _aim(data) else None
        rows.append([data.title, gap, _times(_billed(first), _billed(data)), _times(first.runtime, data.runtime)])
    change = Column(f"{first.metric}, difference", _places(jobs))
    times = (Column("times the worker-seconds", 2), Column("times the wall time", 2))
    caption = f"Each against {first.title}, with the standard error of the difference where it is known."
    yield Table(["job", change, *times], rows, caption)


def _change(first: JobData, data: JobData) -> Measured | None:
    """The difference of two jobs' best scores, with its error as if their rows had nothing in common."""
    before, after = _score(first), _score(data)
    if before is None or after is None:
        return None
    errors = [first.standard_error, data.standard_error]
    known = [error for error in errors if error is not None]
    return Measured(after - before, math.hypot(*known) if len(known) == len(errors) else None, signed=True)


def _same_rows(jobs: Sequence[JobData]) -> str:
    """Whether their scores can be compared at all."""
    channels = {data.metric.partition(":")[0] for data in jobs}
    prints = [[_fingerprint(data, channel) for channel in sorted(channels)] for data in jobs]
    if any(not each for digests in prints for each in digests):
        return ""
    if all(digests == prints[0] for digests in prints):
        return (
            "All scores are from the same rows. Errors of differences are as from different rows; on the same ones, "
            "scores rise and fall together, and the true errors are smaller."
        )
    return "The scores are from different rows: part of their difference is that of the rows."


def _configurations(jobs: Sequence[JobData]) -> Table:
    """The best trial's hyperparameters, a column a job."""
    best = [
        {**data.job.spec["estimator"]["hyperparameters"], **(data.best.hyperparameters if data.best else {})}
        for data in jobs
    ]
    names = list(dict.fromkeys(name for values in best for name in values))
    rows = [[name, *(short(values[name]) if name in values else None for values in best)] for name in names]
    columns = ["hyperparameter", *(data.title for data in jobs)]
    return Table(columns, rows, "Of each job's best trial.")


def _data(jobs: Sequence[JobData]) -> Table:
    """The rows that each job was given, and whether they are the same."""
    rows: list[list[object]] = []
    for data in jobs:
        for name, channel in (data.job.spec.get("inputs") or {}).items():
            rows.append([data.title, name, channel.get("rows"), channel.get("fingerprint")])
    return Table(["job", "channel", "rows", "fingerprint"], rows, "Equal fingerprints are equal rows.")


def _pair(data: JobData) -> tuple[Measured, float | None]:
    """The best trial's score and the un-tuned run's."""
    untuned = data.objective(data.untuned) if data.untuned else None
    return Measured(_score(data), data.standard_error), untuned


def _score(data: JobData) -> float | None:
    return data.score(data.best) if data.best else None


def _aim(data: JobData) -> tuple[str, bool]:
    return data.metric, data.maximize


def _places(jobs: Iterator[JobData] | Sequence[JobData]) -> int | None:
    return places(*(score for data in jobs if (score := _score(data)) is not None))


def _billed(data: JobData) -> float:
    return sum(data.billed.values())


def _times(before: float, after: float) -> float | None:
    return after / before if before else None


def _fingerprint(data: JobData, channel: str) -> str:
    return str((data.job.spec.get("inputs") or {}).get(channel, {}).get("fingerprint") or "")
