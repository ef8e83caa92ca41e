"""One job's record, read once for all its pictures and tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import isfinite
from typing import Any, Self

from hpo.ranges import ParameterRange, range_from_json
from hpo.record import JobView, LedgerRow, ReportRow, Store, split


@dataclass(frozen=True, kw_only=True)
class JobData(JobView):
    """A job as it is in the record, whatever has become of it: running, failed, or without a single trial.

    Args:
        job: see `JobView`.
        trials: see `JobView`.
        untuned: see `JobView`.
        reports: by trial's id, in the order of their steps; of the un-tuned run too.
        ledger: billed worker-seconds, by time.
    """

    reports: Mapping[str, tuple[ReportRow, ...]]
    ledger: tuple[LedgerRow, ...] = ()

    @classmethod
    def read(cls, store: Store, name: str) -> Self:
        """Everything the record has of a job.

        Raises:
            ConfigurationError: it has no such job.
        """
        trials, untuned = split(store.trials(name))
        reports: dict[str, list[ReportRow]] = defaultdict(list)
        for report in store.reports(name):
            reports[report.trial_id].append(report)
        data = cls(
            job=store.job(name),
            trials=tuple(trials),
            untuned=untuned,
            reports={trial: tuple(rows) for trial, rows in reports.items()},
            ledger=tuple(store.ledger(name)),
        )
        return data if data.metric else data._with_metric()

    def _with_metric(self) -> Self:
        """A training without an objective, shown by the last of its metrics that is not of the rows it trains on."""
        rows = [row for reports in self.reports.values() for row in reports]
        names = [name for row in rows[-1:] for name in row.metrics]
        if not names:
            return self
        shown = next((name for name in reversed(names) if not name.startswith("train:")), names[-1])
        reports = {trial: tuple(_by_metric(row, shown) for row in rows) for trial, rows in self.reports.items()}
        last = {trial: rows[-1].objective for trial, rows in reports.items()}
        trials = tuple(replace(trial, objective=last.get(trial.trial_id)) for trial in self.trials)
        spec = {**self.job.spec, "objective_metric_name": shown}
        return replace(self, job=replace(self.job, spec=spec), trials=trials, reports=reports)

    @property
    def title(self) -> str:
        """The job's title."""
        return self.job.name

    @property
    def metric(self) -> str:
        """The objective's name."""
        return str(self.job.spec["objective_metric_name"])

    @property
    def maximize(self) -> bool:
        """Whether more of it is better."""
        return bool(self.job.spec["objective_type"] == "Maximize")

    @property
    def possible(self) -> int:
        """Units of all trials, each trained to its end; a fork trains what is left of the trial that it replaces."""
        return self.max_resource * sum(not trial.replaces for trial in self.trials)

    @property
    def by_best(self) -> bool:
        """Whether trials are compared by their best value instead of their last."""
        return bool(self.job.spec["objective_value"] == "best")

    @cached_property
    def unit(self) -> str:
        """The trainer's word for one unit of resource: "round", "epoch", "unit"."""
        unit: str | None = self.job.spec.get("unit")
        if unit is None:  # An older Warmband's.
            from trainers.registry import unit_in  # imports Ray

            unit = unit_in(self.job.spec.get("estimator", {}))
        return unit

    def compared(self, trial_id: str) -> dict[int, float]:
        """By resource, what a trial is compared by there: its value, or its best one so far."""
        better = max if self.maximize else min
        values: dict[int, float] = {}
        best = None
        for report in self.reports.get(trial_id, ()):
            if report.objective is not None:
                best = report.objective if best is None else better(best, report.objective)
                values[report.step] = best if self.by_best else report.objective
        return values

    @property
    def max_resource(self) -> int:
        """Units of a trial that runs to the end, as planned, or as the longest has reached."""
        reached = max((trial.resource for trial in self.trials), default=0)
        return int(self.job.plan.get("max_resource", 0)) or reached

    @cached_property
    def rungs(self) -> tuple[int, ...]:
        """Every resource at which some bracket compares its trials, or ends them, rising."""
        brackets = self.job.plan.get("brackets", ())
        return tuple(sorted({int(rung) for bracket in brackets for rung in bracket["rungs"]}))

    @cached_property
    def ranges(self) -> dict[str, ParameterRange]:
        """The tuned hyperparameters, by name."""
        specs: Mapping[str, Any] = self.job.spec.get("hyperparameter_ranges", {})
        return {name: range_from_json(state) for name, state in specs.items()}

    @cached_property
    def billed(self) -> dict[str, float]:
        """Worker-seconds by what they went into: starting, training, checkpointing, idle."""
        kinds = dict.fromkeys(("starting", "training", "checkpointing", "idle"), 0.0)
        for entry in self.ledger:
            kinds[entry.kind] += entry.worker_seconds
        return kinds

    @cached_property
    def billed_by_trial(self) -> dict[str, float]:
        """Worker-seconds by trial's id; under an empty one what gangs used for none."""
        trials: dict[str, float] = defaultdict(float)
        for entry in self.ledger:
            trials[entry.trial_id] += entry.worker_seconds
        return dict(trials)


def _by_metric(row: ReportRow, name: str) -> ReportRow:
    value = row.metrics.get(name)
    return replace(row, objective=float(value) if value is not None and isfinite(value) else None)
