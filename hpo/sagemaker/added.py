"""Trials that a person adds to a job that has begun: their values, checked and put into its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hpo.ranges import Scalar, checked_point, range_from_json
from hpo.record import JobRow, Store, is_training, repeats_of, status_and_reason
from hpo.text import count
from trainers.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """Values for one of a job's next trials, in its record.

    Args:
        job: its row as it was then.
        values: by name; what is left out is the searcher's.
        ahead: how many others wait for a trial before these.
        places: trials that are still to be suggested behind it; of configurations, where each is trained several times.
    """

    job: JobRow
    values: Mapping[str, Scalar]
    ahead: int
    places: int

    def to_json(self) -> dict[str, Any]:
        """For programs, under the names of SageMaker's API where it has one."""
        return {
            "HyperParameterTuningJobName": self.job.name,
            "HyperParameterTuningJobStatus": status_and_reason(self.job)[0],
            "HyperParameters": dict(self.values),
            "AdditionsAhead": self.ahead,
            "PlacesLeft": self.places,
        }


def add_trial(store: Store, name: str, values: Mapping[str, Any]) -> Added:
    """Gives values for a trial of a job: the next that is suggested takes them, in whatever process the job runs.

    It takes a place of `max_jobs`, behind the job's points to evaluate and what was added before.

    Args:
        store: the record.
        name: the job's.
        values: by name; what is left out is the searcher's.

    Raises:
        ConfigurationError: there is no such job, it has no place left or is over, its strategy has no use for given
            values, or these are not of its ranges.
    """
    job = store.job(name)
    spec = job.spec
    if is_training(job):
        raise ConfigurationError(f"no trial can be added to job {name!r}: {spec['refuses_given']}")
    ranges = {each: range_from_json(state) for each, state in spec["hyperparameter_ranges"].items()}
    point = checked_point(ranges, values, "the trial")
    if refusal := spec.get("refuses_given"):
        raise ConfigurationError(f"no trial can be added to job {name!r}: {refusal}")
    grows = not any(trial.replaces for trial in store.trials(name))
    found: list[tuple[JobRow, int, int]] = []

    def check(job: JobRow, begun: int, waiting: int) -> None:
        _check_goes_on(job, grows=grows)
        tried = -(-begun // repeats_of(job))  # Each of these values is of so many trials.
        points = max(0, len(job.spec.get("points_to_evaluate") or ()) - tried)
        left = job.spec["max_jobs"] // repeats_of(job) - tried - points - waiting
        if left < 1:
            raise ConfigurationError(_no_place(job, begun, points + waiting, grows=grows))
        found.append((job, points + waiting, left - 1))

    store.add_trial(name, point, check)
    added, ahead, places = found[0]
    return Added(job=added, values=point, ahead=ahead, places=places)


def _check_goes_on(job: JobRow, *, grows: bool) -> None:
    """Refuses a job that is Completed. One that was stopped, or whose driver died, can be resumed."""
    if job.status != "Completed":
        return
    if job.reason:
        raise ConfigurationError(f"job {job.name!r} is Completed, {job.reason}: no trial follows; begin another job")
    raise ConfigurationError(f"job {job.name!r} is Completed: no trial follows. {_more(job, grows=grows)}")


def _no_place(job: JobRow, begun: int, waiting: int, *, grows: bool) -> str:
    most = count(job.spec["max_jobs"], "trial")
    others = f", and {waiting} given before wait for theirs" if waiting else ""
    more = _more(
        job,
        f"stop it (hpo stop {job.name}), then: " if job.status == "InProgress" and not job.lost else "",
        grows=grows,
    )
    return f"job {job.name!r} has no place left: of its {most} {begun} have begun{others}. {more}"


def _more(job: JobRow, before: str = "", *, grows: bool) -> str:
    """How a job gets places for more trials, unless its population has exchanged checkpoints."""
    if not grows:
        return "Its population has exchanged checkpoints, and who comes later would not be of it: begin another job"
    more = f"hpo resume {job.name} --set tuning.max_jobs=N, with an N above {job.spec['max_jobs']}"
    return f"To have more: {before}{more}; then add the trial while the job runs"
