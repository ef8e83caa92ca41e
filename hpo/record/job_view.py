"""The read model of a job: its status, its time, and its trials in the order of the objective."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, cached_property
from math import isfinite
from typing import Any

from hpo.gap import Gap
from hpo.ranking import DIVERGED, FAILED, Rank, Ranking, Standing, best_of, configuration, mean_error, ranks
from hpo.record.tables import JobRow, TrialRow

EARLIER_BEST = "earlier_best"
"""Key of a job's spec: the best trial of its parents, where their values count as its own; see `as_earlier_best`."""

UNTUNED = "untuned"
"""The trial id of the run with the trainer's own hyperparameters, beside the trials."""

KIND, TRAINING = "kind", "training"
"""Key of a job's spec, and its value for a single training; a tuning job has none."""


def is_training(job: JobRow) -> bool:
    """Whether a job is a single training, and no search."""
    return job.spec.get(KIND) == TRAINING


def run_name(trial_id: str) -> str:
    """Return the name of a run in a sentence: a trial's own, or words for the un-tuned run."""
    return "the un-tuned run" if trial_id == UNTUNED else trial_id


def training_job_name(job: str, trial_id: str) -> str:
    """Return the name of a run among the training jobs of all jobs, as SageMaker's API has them."""
    return f"{job}-{UNTUNED}" if trial_id == UNTUNED else trial_id


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


def split(runs: Iterable[TrialRow]) -> tuple[list[TrialRow], TrialRow | None]:
    """Return the tuned trials among the rows of a job, and its un-tuned run, if there is one."""
    rows = list(runs)
    return [row for row in rows if row.number >= 0], next((row for row in rows if row.number < 0), None)


def untuned_counts(job: JobRow, untuned: TrialRow | None) -> bool:
    """Return whether the un-tuned run of a job is a candidate for its result.

    It has to have trained to its end: one that failed, diverged, has no finite objective, or was stopped by a limit or
    by the end of its job is none. The job's summary says of one that ended before its length that it did so by itself.
    """
    if untuned is None or untuned.ended_at is None or untuned.stopped or objective(job, untuned) is None:
        return False
    summary = job.summary.get("untuned") or (job.summary.get("before") or {}).get("untuned") or {}
    return untuned.status == "Completed" or (untuned.status == "Stopped" and bool(summary.get("ended_by_itself")))


def result_of(job: JobRow, trials: Iterable[TrialRow], untuned: TrialRow | None) -> TrialRow | None:
    """Return the run that a job comes to: its best trial, or the un-tuned run if that is better.

    Args:
        job: its row.
        trials: the tuned ones.
        untuned: the un-tuned run, if there is one.

    Returns:
        None where neither has a finite objective. A tie goes to the run with less resource, then to the un-tuned one.
    """
    known = list(trials)
    best = best_trial(job, known)
    if untuned is None or not untuned_counts(job, untuned):
        return best
    if best is None:
        return untuned
    tuned = replace(_standing(job, best), value=means(job, known)[best.number])
    ranking = _ranking(job)
    return min((ranking.rank_standing(tuned), best), (ranking.rank_standing(_standing(job, untuned)), untuned))[1]


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


def overall_best(job: JobRow, trials: Iterable[TrialRow], untuned: TrialRow | None = None) -> TrialRow | None:
    """The better of a job's result and of its parents' best trial, in the order of `best_trial`; None if none has one.

    Only of a job that warm-started from the same data and trainer: what else would have been measured differently.
    """
    earlier, trials = job.spec.get(EARLIER_BEST), list(trials)
    result = result_of(job, trials, untuned)
    if earlier is None:
        return result
    parents = TrialRow(**earlier, number=-2)  # It was there before all runs of this job.
    found = [(_standing(job, parents), parents)]
    if result is not None:
        value = objective(job, result) if result is untuned else means(job, trials)[result.number]
        found.append((replace(_standing(job, result), value=value), result))
    first = best_of(found, lambda each: _ranking(job).rank_standing(each[0]))
    return None if first is None else first[1]


def ranked(job: JobRow, trials: Iterable[TrialRow]) -> list[TrialRow]:
    """The trials, best first; those without an objective last, then those that diverged, and then that failed."""
    known = list(trials)
    return sorted(known, key=_rank(job, known))


def objective(job: JobRow, trial: TrialRow) -> float | None:
    """The value that the job compares trials by: the last, or the best."""
    return _ranking(job).counts(trial.objective, trial.best_objective)


def _ranking(job: JobRow) -> Ranking:
    return _ranking_of(job.spec["objective_type"], job.spec["objective_value"])


@cache
def _ranking_of(objective_type: str, objective_value: str) -> Ranking:
    """See `Ranking.of`: made once, as it is asked for with each of many thousand trials."""
    return Ranking.of(objective_type, objective_value)


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
    """A job and its runs, as commands and pages show them.

    Args:
        job: its row.
        trials: the tuned ones, in the order in which they were suggested.
        untuned: the run of the static hyperparameters beside them, if there was one.
    """

    job: JobRow
    trials: Sequence[TrialRow] = ()
    untuned: TrialRow | None = None

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
        """The best tuned trial; None where none has a finite objective."""
        return best_trial(self.job, self.trials)

    @cached_property
    def result(self) -> TrialRow | None:
        """The run that the job comes to: see `result_of`."""
        return result_of(self.job, self.trials, self.untuned)

    @property
    def standard_error(self) -> float | None:
        """The standard error of the best trial's score, where it is known.

        A trial's is from the rows that it was measured on; that of a mean of trials from how far they lie apart.
        """
        summary = self.job.summary
        error = ((summary.get("best_trial") or summary.get("best")) or {}).get("standard_error")
        if self.means:
            error = self.mean_error(self.best) if self.best else None
        return float(error) if error and isfinite(error) else None

    @cached_property
    def gap(self) -> Gap | None:
        """The best trial's score against the un-tuned run's; None where one of them has none, or did not train on."""
        best, untuned = self.best, self.untuned
        if best is None or untuned is None or not untuned_counts(self.job, untuned):
            return None
        value, other = self.score(best), self.objective(untuned)
        if value is None or other is None:
            return None
        return Gap(
            value=value,
            other=other,
            error=self.standard_error,
            maximize=_ranking(self.job).maximize,
            repeats=repeats_of(self.job),
            units=(best.resource, untuned.resource),
        )

    @cached_property
    def overall_best(self) -> TrialRow | None:
        """The better of its result and of the best trial of the parents whose values count as its own."""
        return overall_best(self.job, self.trials, self.untuned)

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
        if trial.number < 0 or self.means.get(trial.number) is None:
            return None
        return self._mean_errors[trial.number // repeats_of(self.job)]

    def score(self, trial: TrialRow) -> float | None:
        """What the job compares configurations by: a trial's own value, or the mean of its configuration's trials."""
        return self.means[trial.number] if self.means and trial.number >= 0 else self.objective(trial)

    def ranked(self) -> list[TrialRow]:
        """The trials, best first."""
        return ranked(self.job, self.trials)
