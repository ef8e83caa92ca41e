"""The read model of a job: its status, its time, and its trials in the order of the objective."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

from hpo.ranking import DIVERGED, FAILED, Rank, Ranking, Standing, best_of, configuration, mean_error, ranks
from hpo.record.tables import JobRow, TrialRow

EARLIER_BEST = "earlier_best"
"""Key of a job's spec: the best trial of its parents, where their values count as its own; see `as_earlier_best`."""

KIND, TRAINING = "kind", "training"
"""Key of a job's spec, and its value for a single training; a tuning job has none."""


def is_training(job: JobRow) -> bool:
    """Whether a job is a single training, and no search."""
    return job.spec.get(KIND) == TRAINING


def status_and_reason(job: JobRow) -> tuple[str, str]:
    """A job whose driver is gone is Failed, whatever was written last."""
    if job.lost:
        return "Failed", (
            f"its driver was last heard of {job.silent:.0f} s ago, and the record says {job.status}; to go on: "
            f"hpo resume {job.name}"
        )
    return job.status, job.reason


def runtime(job: JobRow) -> float:
    """Seconds for which a job was driven: from its start to its end, or its last heartbeat, without the gaps."""
    end = job.ended_at or job.heard
    runs = job.summary.get("runs") or [[job.created_at, end]]
    return float(sum((max(began, end) if ended is None else ended) - began for began, ended in runs))


def best_trial(job: JobRow, trials: Iterable[TrialRow]) -> TrialRow | None:
    """The trial with the best objective, ties to less resource, then to the first; None if none has one.

    Where configurations are trained several times, it is the best of those of the configuration with the best mean.
    """
    known = list(trials)
    return best_of(known, _rank(job, known))


def best_of_jobs(jobs: Sequence[tuple[JobRow, Sequence[TrialRow]]]) -> TrialRow | None:
    """The best of the best trials of jobs that have the same objective, each compared by its configuration's mean.

    Args:
        jobs: each with its trials, whose numbers are those of its own job; ties go to the first.
    """
    found: list[tuple[Standing, TrialRow]] = []
    for place, (job, trials) in enumerate(jobs):
        if (best := best_trial(job, trials)) is not None:
            value = means(job, trials)[best.number]
            found.append((replace(_standing(job, best), value=value, number=place), best))
    first = best_of(found, lambda each: _ranking(jobs[0][0]).rank_standing(each[0]))
    return None if first is None else first[1]


def as_earlier_best(trial: TrialRow) -> dict[str, Any]:
    """A trial of a parent, for the spec of a job that may outlive that."""
    kept = ("job", "trial_id", "status", "hyperparameters", "resource", "objective", "best_objective")
    names = (*kept, "best_resource", "checkpoint", "started_at", "ended_at")
    return {name: getattr(trial, name) for name in names}


def overall_best(job: JobRow, trials: Iterable[TrialRow]) -> TrialRow | None:
    """The best of a job's trials and of its parents', in the order of `best_trial`; None if none has an objective.

    Only of a job that warm-started from the same data and trainer: what else would have been measured differently.
    """
    earlier, trials = job.spec.get(EARLIER_BEST), list(trials)
    if earlier is None:
        return best_trial(job, trials)
    best, parents = best_trial(job, trials), TrialRow(**earlier, number=-1)  # It was there before all of them.
    found = [_standing(job, parents)]
    if best is not None:
        value = means(job, trials)[best.number]
        found.append(replace(_standing(job, best), value=value))
    first = best_of(found, _ranking(job).rank_standing)
    return None if first is None else parents if first.number < 0 else best


def ranked(job: JobRow, trials: Iterable[TrialRow]) -> list[TrialRow]:
    """The trials, best first; those without an objective last, then those that diverged, and then that failed."""
    known = list(trials)
    return sorted(known, key=_rank(job, known))


def objective(job: JobRow, trial: TrialRow) -> float | None:
    """The value that the job compares trials by: the last, or the best."""
    return _ranking(job).counts(trial.objective, trial.best_objective)


def _ranking(job: JobRow) -> Ranking:
    return Ranking.of(job.spec["objective_type"], job.spec["objective_value"])


def _rank(job: JobRow, trials: Sequence[TrialRow]) -> Callable[[TrialRow], Rank]:
    found = ranks(_ranking(job), (_standing(job, trial) for trial in trials), repeats_of(job))
    return lambda trial: found[trial.number]


def _standing(job: JobRow, trial: TrialRow) -> Standing:
    ranking, lost = _ranking(job), {"Diverged": DIVERGED, "Failed": FAILED}
    return Standing(
        value=ranking.counts(trial.objective, trial.best_objective),
        resource=ranking.counts(trial.resource, trial.best_resource),
        number=trial.number,
        lost=lost.get(trial.status, 0),
        partial=bool(trial.stopped),
    )


def repeats_of(job: JobRow) -> int:
    """How many trials each configuration of a job has."""
    return int(job.spec.get("repeats", 1))


def means(job: JobRow, trials: Iterable[TrialRow]) -> dict[int, float | None]:
    """The mean objective of each trial's configuration, by the trial's number; None while a trial of it has none."""
    together: dict[int, list[TrialRow]] = defaultdict(list)
    for trial in trials:
        together[trial.number // repeats_of(job)].append(trial)
    found: dict[int, float | None] = {}
    for members in together.values():
        whole = configuration([_standing(job, trial) for trial in members], repeats_of(job))
        found |= dict.fromkeys((trial.number for trial in members), None if whole.lost else whole.value)
    return found


def when(seconds: float) -> datetime:
    """Unix seconds as a datetime in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


@dataclass(frozen=True, kw_only=True)
class JobView:
    """A job and its tuned trials, as commands and pages show them.

    Args:
        job: its row.
        trials: in the order in which they were suggested.
    """

    job: JobRow
    trials: Sequence[TrialRow] = ()

    @property
    def status(self) -> str:
        """The job's; Failed where its driver is gone, whatever was written last."""
        return status_and_reason(self.job)[0]

    @property
    def reason(self) -> str:
        """Why it is so; empty if there is nothing to say."""
        return status_and_reason(self.job)[1]

    @property
    def runtime(self) -> float:
        """Seconds for which it was driven."""
        return runtime(self.job)

    @cached_property
    def best(self) -> TrialRow | None:
        """The best trial; None where none has a finite objective."""
        return best_trial(self.job, self.trials)

    @cached_property
    def overall_best(self) -> TrialRow | None:
        """The best trial of it and of the parents whose values count as its own."""
        return overall_best(self.job, self.trials)

    @property
    def planned(self) -> int:
        """Trials in all: those that were asked for, and the forks that took others' places."""
        return int(self.job.spec["max_jobs"]) + sum(bool(trial.replaces) for trial in self.trials)

    @property
    def used(self) -> int:
        """Units that trials have trained: of one that began from another's checkpoint, those behind that."""
        return sum(trial.resource - trial.parent_resource for trial in self.trials)

    def objective(self, trial: TrialRow) -> float | None:
        """What the job compares trials by: the last value, or the best."""
        return objective(self.job, trial)

    @cached_property
    def means(self) -> dict[int, float | None]:
        """See `means`; empty where each configuration is trained once."""
        return means(self.job, self.trials) if repeats_of(self.job) > 1 else {}

    def repeats(self, trial: TrialRow) -> list[TrialRow]:
        """The trials of a trial's configuration, itself among them."""
        number = trial.number // (repeats := repeats_of(self.job))
        return [each for each in self.trials if each.number // repeats == number]

    @cached_property
    def _mean_errors(self) -> dict[int, float | None]:
        """By the number of a configuration; once for all, as views list thousands of trials."""
        together: dict[int, list[float]] = defaultdict(list)
        for trial in self.trials:
            if (value := self.objective(trial)) is not None:
                together[trial.number // repeats_of(self.job)].append(value)
        return {number: mean_error(values) for number, values in together.items()}

    def mean_error(self, trial: TrialRow) -> float | None:
        """The standard error of the mean of a trial's configuration; None where that is not a mean of several."""
        if self.means.get(trial.number) is None:
            return None
        return self._mean_errors[trial.number // repeats_of(self.job)]

    def score(self, trial: TrialRow) -> float | None:
        """What the job compares configurations by: a trial's own value, or the mean of its configuration's trials."""
        return self.means[trial.number] if self.means else self.objective(trial)

    def ranked(self) -> list[TrialRow]:
        """The trials, best first."""
        return ranked(self.job, self.trials)
