"""A tuning job of a published experiment as a step: run once, found again, and told in figures."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from experiments.shared.network import channels
from experiments.shared.problems import Problem
from experiments.shared.published import Steps
from hpo import HyperbandStrategyConfig, HyperparameterTuner, StrategyConfig
from hpo.ranges import ParameterRange
from hpo.record import Store
from hpo.report import JobData
from hpo.uncertainty import standard_error
from trainers import DivergedError, Trainer, WarmbandError
from trainers.datasets import Dataset


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one training or one search came to.

    Args:
        validation: the score that chose, on the validation rows; NaN where it diverged.
        test: the same configuration's on the test rows.
        standard_error: of the validation score, from its rows; None where it is not known.
        worker_seconds: billed, for all of it; NaN where a single training diverged, which has no account.
        training: of these, in which workers trained; the others are gangs' start, and waiting; NaN as they are.
        gangs: that came up.
        seconds: of wall time.
        units: trained by all trials; 0 where a single training diverged.
        best: the chosen hyperparameters.
        job: the tuning job's name; empty for a single training.
        trials: of a search, by status.
    """

    validation: float
    test: float
    standard_error: float | None = None
    worker_seconds: float
    training: float
    gangs: int
    seconds: float
    units: int
    best: dict[str, Any]
    job: str = ""
    trials: dict[str, int]

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> Outcome:
        """Out of a result.json, which has null where a figure is NaN."""
        figures = ("validation", "test", "worker_seconds", "training")
        return cls(**{**kept, **{of: math.nan if kept[of] is None else kept[of] for of in figures}})


@dataclass(frozen=True, kw_only=True)
class Searches:
    """Where searches and single trainings run, and where they are kept.

    Args:
        steps: keep what is done.
        folder: of the record and the models.
        console: where a job is followed.
    """

    steps: Steps
    folder: Path
    console: Console

    @property
    def store(self) -> str:
        """Database URL of the record."""
        return f"sqlite:///{self.folder.absolute()}/warmband.db"

    def search(
        self,
        name: str,
        problem: Problem,
        dataset: Dataset,
        *,
        trainer: Trainer,
        min_resource: int,
        seed: int,
        ranges: Mapping[str, ParameterRange] | None = None,
        parallel: int | None = None,
    ) -> Outcome:
        """Hyperband over a problem's ranges; a `min_resource` of its `max_resource` stops no trial.

        Args:
            name: of the step, and what the job's name begins with.
            problem: what is tuned.
            dataset: its rows.
            trainer: with the static hyperparameters.
            min_resource: units below which no trial is stopped.
            seed: of configurations and trainings.
            ranges: other ranges than the problem's.
            parallel: other trials at once than the problem's.
        """
        ranges = problem.ranges if ranges is None else ranges
        parallel = problem.parallel if parallel is None else parallel
        settings = {
            "trainer": trainer.to_json(),
            "ranges": {each: bounds.to_json() for each, bounds in ranges.items()},
            "jobs": problem.jobs,
            "parallel": parallel,
            "resource": [min_resource, problem.max_resource],
            "seed": seed,
            "rows": [dataset.name, rows(dataset)],
            "kept": [field.name for field in fields(Outcome)],
        }

        def run() -> dict[str, Any]:
            tuner = HyperparameterTuner(
                trainer,
                problem.objective,
                ranges,
                strategy="Hyperband",
                strategy_config=StrategyConfig(
                    HyperbandStrategyConfig(problem.max_resource, min_resource, suggestions="random")
                ),
                max_jobs=problem.jobs,
                max_parallel_jobs=parallel,
                random_seed=seed,
                storage_path=str(self.folder.absolute() / "jobs"),
                store=self.store,
                console=self.console,
            )
            job = self._free(name)
            tuner.fit(channels(dataset), job_name=job)
            return asdict(self._told(job, problem))

        return Outcome(**self.steps.do(name, settings, run))

    def train(self, name: str, problem: Problem, dataset: Dataset, *, trainer: Trainer, seed: int) -> Outcome:
        """One training with a trainer's own hyperparameters, without tuning; arguments as for `search`."""

        def run() -> dict[str, Any]:
            began = time.perf_counter()
            try:
                trained = trainer.fit(channels(dataset), storage_path=str(self.folder.absolute() / "runs"), seed=seed)
            except DivergedError:
                none, seconds = math.nan, time.perf_counter() - began
                figures = {"validation": none, "test": none, "worker_seconds": none, "training": none}
                return figures | {"gangs": 1, "seconds": seconds, "units": 0, "best": {}, "trials": {}}
            return asdict(
                Outcome(
                    validation=trained.metrics[problem.objective],
                    test=trained.metrics[problem.test],
                    standard_error=standard_error(
                        problem.score, trained.metrics[problem.objective], labels(dataset.validation)
                    ),
                    worker_seconds=trained.worker_seconds,
                    training=trainer.workers * trained.training_seconds,
                    gangs=1,
                    seconds=time.perf_counter() - began,
                    units=len(trained.reports),
                    best={},
                    trials={},
                )
            )

        settings = {
            "trainer": trainer.to_json(),
            "seed": seed,
            "rows": [dataset.name, rows(dataset)],
            "kept": [field.name for field in fields(Outcome)],
        }
        return Outcome(**self.steps.do(name, settings, run))

    def first(self, whole: Outcome, count: int, problem: Problem, dataset: Dataset) -> Outcome:
        """A search of the first trials of another, which ran all trials to the end, one at a time: read, not run.

        Its bill is the other's without the stretch in which the further trials were served. What every search pays for
        is in it whole: the gang's start, the units that measure the cost, the training without tuning, the end.

        Args:
            whole: the other search.
            count: its first so many trials, at least one.
            problem: what is tuned.
            dataset: its rows.
        """
        with Store(self.store) as store:
            every = JobData.read(store, whole.job)
        counted, further = ({trial.trial_id for trial in part} for part in (every.trials[:count], every.trials[count:]))
        begins = max(row.at for row in every.ledger if row.trial_id in counted)
        ends = max((row.at for row in every.ledger if row.trial_id in further), default=begins)
        left_out = [row for row in every.ledger if begins < row.at <= ends]
        told = replace(
            every,
            trials=every.trials[:count],
            ledger=tuple(row for row in every.ledger if not begins < row.at <= ends),
        )
        best, statuses = told.best, Counter[str](trial.status for trial in told.trials)
        metrics = told.reports[best.trial_id][-1].metrics if best else {}
        validation = metrics.get(problem.objective, math.nan)
        return Outcome(
            validation=validation,
            test=metrics.get(problem.test, math.nan),
            standard_error=standard_error(problem.score, validation, labels(dataset.validation)),
            worker_seconds=sum(told.billed.values()),
            training=told.billed["training"],
            gangs=len({row.gang for row in told.ledger}),
            seconds=whole.seconds - sum(row.worker_seconds / row.workers for row in left_out),
            units=sum(trial.resource for trial in told.trials),
            best=best.hyperparameters if best else {},
            job=whole.job,
            trials={status: statuses[status] for status in whole.trials},
        )

    def _free(self, name: str) -> str:
        """A job's name that the record does not have: a run that died in the middle of a job left it there."""
        with Store(self.store) as store:
            taken = {job.name for job in store.jobs()}
        names = [name, *(f"{name}-{again}" for again in range(2, len(taken) + 3))]
        return next(free for free in names if free not in taken)

    def _told(self, job: str, problem: Problem) -> Outcome:
        with Store(self.store) as store:
            ended = store.job(job)
        summary = ended.summary
        if ended.status != "Completed" or not summary["best"]:
            # Kept as a step, its figures would pass for those of a whole search.
            raise WarmbandError(
                f"tuning job {job} ended as {ended.status} ({ended.reason or 'no trial has a score'}), and its figures "
                f"are not those of a whole search; `hpo trials {job} --store {self.store}` says more. Run this again "
                "with the same --out: it makes the search anew"
            )
        best = summary["best"]
        return Outcome(
            validation=best["value"],
            test=best["metrics"][problem.test],
            standard_error=best["standard_error"],
            worker_seconds=sum(summary["worker_seconds"].values()),
            training=summary["worker_seconds"]["training"],
            gangs=summary["gangs"],
            seconds=summary["wall_seconds"],
            units=summary["resource_used"],
            best=best["hyperparameters"],
            job=job,
            trials=summary["trials"],
        )


def rows(dataset: Dataset) -> int:
    """How many rows there are to train on."""
    return len(labels(dataset.train))


def labels(part: Any) -> Any:
    """The labels of a dataset's part: of a pair the second, of a table the first column."""
    return part[1] if isinstance(part, tuple) else part.iloc[:, 0].to_numpy()
