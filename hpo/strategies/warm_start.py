"""Warm start: results of earlier jobs, for the model of a new one."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from hpo.ranges import ParameterRange, Scalar, present, range_from_json
from hpo.ranking import Ranking
from hpo.record import JobRow, Store, TrialRow, as_earlier_best, best_of_jobs, objective
from hpo.strategies.hyperband import Plan
from hpo.text import enumerated
from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError
from trainers.plain import plain_scalar

if TYPE_CHECKING:
    from hpo.suggestions import Observation

MOST_PARENTS = 5

EARLIER = "earlier_results"
"""Key of a job's spec: the results of its parents, as they were when it began."""


class WarmStartTypes(Enum):
    """What a job has in common with its parents."""

    IDENTICAL_DATA_AND_ALGORITHM = "IdenticalDataAndAlgorithm"
    """The trainer and its data: their values count as the job's own would."""
    TRANSFER_LEARNING = "TransferLearning"
    """The hyperparameters: of each parent, the order of its values counts."""


class WarmStartConfig:
    """Earlier jobs of the record whose results a job's model learns from.

    Args:
        warm_start_type: a `WarmStartTypes`, or its value.
        parents: the names of one to five jobs that have ended.

    Raises:
        ConfigurationError: naming the argument, its value and what to give.
    """

    def __init__(self, warm_start_type: WarmStartTypes | str, parents: Iterable[str]) -> None:
        known = [kind.value for kind in WarmStartTypes]
        kind = warm_start_type.value if isinstance(warm_start_type, WarmStartTypes) else warm_start_type
        if kind not in known:
            raise ConfigurationError(
                f"WarmStartConfig: warm_start_type is {warm_start_type!r}; give {' or '.join(known)}"
                f"{did_you_mean(kind, known)}"
            )
        given: Any = [parents] if isinstance(parents, str) else parents
        listed: list[Any] = list(map(plain_scalar, given)) if isinstance(given, Iterable) else [None]
        if not all(isinstance(name, str) and name for name in listed):
            raise ConfigurationError(f"WarmStartConfig: parents is {parents!r}; give the names of jobs")
        names = set(listed)
        if not 1 <= len(names) <= MOST_PARENTS:
            raise ConfigurationError(f"WarmStartConfig: parents has {len(names)} names; give one to {MOST_PARENTS}")
        self.type = WarmStartTypes(kind)
        self.parents = names

    def to_input_req(self) -> dict[str, Any]:
        """The form that `describe()` gives it in."""
        parents = [{"HyperParameterTuningJobName": name} for name in sorted(self.parents)]
        return {"WarmStartType": self.type.value, "ParentHyperParameterTuningJobs": parents}

    def to_json(self) -> dict[str, Any]:
        """Everything it was made with, as arguments."""
        return {"warm_start_type": self.type.value, "parents": sorted(self.parents)}

    def __repr__(self) -> str:
        return f"WarmStartConfig({self.type.value!r}, parents={sorted(self.parents)!r})"


def earlier_results(
    config: WarmStartConfig, spec: Mapping[str, Any], store: Store, *, trains: bool = True
) -> list[dict[str, Any]]:
    """The parents' results that a new job can learn from, for its spec.

    Args:
        config: names the parents.
        spec: of the new job.
        store: has them all.
        trains: the job trains, so that parents with values that count as its own have to have its data; False for one
            that is simulated, which reads none.

    Returns:
        Observations as JSON, in the order of parents' names and of their trials.

    Raises:
        ConfigurationError: a parent is not there, has not ended, or differs in what has to be the same; or no trial of
            theirs has hyperparameters that the new job could try.
    """
    known = {job.name: job for job in store.jobs()}
    results = []
    for name in sorted(config.parents):
        if name not in known:
            raise ConfigurationError(
                f"warm_start_config names job {name!r}, and {store.url} has none{did_you_mean(name, known)}"
            )
        _check_parent(known[name], spec, config.type)
        if trains and config.type is WarmStartTypes.IDENTICAL_DATA_AND_ALGORITHM:
            _check_data(known[name], spec)
        own = name if config.type is WarmStartTypes.TRANSFER_LEARNING else ""
        results += _results(known[name], spec, store, own)
    if not results:
        raise ConfigurationError(
            f"warm_start_config: no trial of {enumerated(sorted(config.parents))} reported a value with "
            "hyperparameters within this job's ranges; give other parents, or wider ranges"
        )
    return results


def earlier_best(config: WarmStartConfig, store: Store) -> dict[str, Any] | None:
    """The best trial of the parents, for the spec of a job among whose own their values count; None where they do not.

    Whatever its hyperparameters: a trial outside of the new job's ranges may still be the best that is known.

    Args:
        config: names the parents, which `earlier_results` has checked.
        store: has them all.
    """
    if config.type is WarmStartTypes.TRANSFER_LEARNING:
        return None
    jobs = [store.job(name) for name in sorted(config.parents)]
    best = best_of_jobs([(job, [row for row in store.trials(job.name) if row.number >= 0]) for job in jobs])
    return None if best is None else as_earlier_best(best)


def observations_of(results: Sequence[Mapping[str, Any]]) -> list[Observation]:
    """Results as `earlier_results` gives them, for a model."""
    from hpo.suggestions import Observation  # imports scikit-learn, which a check of a job file does not wait for

    return [Observation(**{**each, "value": math.nan if each["value"] is None else each["value"]}) for each in results]


def observations_in(spec: Mapping[str, Any]) -> list[Observation]:
    """The earlier results of a job's spec."""
    return observations_of(spec.get(EARLIER, ()))


def _check_parent(parent: JobRow, spec: Mapping[str, Any], kind: WarmStartTypes) -> None:
    """Refuses a parent that is under way, or has another objective, other hyperparameters or, if asked, other data."""
    about = f"warm_start_config: job {parent.name!r}"
    if parent.status in ("InProgress", "Stopping"):
        raise ConfigurationError(f"{about} is {parent.status}; wait for its end, or stop it")
    for field in ("objective_metric_name", "objective_type", "objective_value"):
        if (had := parent.spec[field]) != spec[field]:
            raise ConfigurationError(f"{about} has {field} {had!r}, and this one {spec[field]!r}; give the same")
    tuned, had_tuned = spec["hyperparameter_ranges"], parent.spec["hyperparameter_ranges"]
    static, had_static = _static(spec), _static(parent.spec)
    for names, others, one, other in (
        (tuned, {*had_tuned, *had_static}, "this job tunes", "it has not"),
        (had_tuned, {*tuned, *static}, "it tuned", "this job has not"),
    ):
        if missing := sorted(set(names) - others):
            raise ConfigurationError(
                f"{about}: {one} {enumerated(missing)}, which {other}; give a parent with the same hyperparameters"
            )
    if kind is WarmStartTypes.TRANSFER_LEARNING:
        return
    if parent.spec["estimator"]["trainer"] != spec["estimator"]["trainer"]:
        raise ConfigurationError(f"{about} has another trainer; give the type 'TransferLearning'")


def _check_data(parent: JobRow, spec: Mapping[str, Any]) -> None:
    """Refuses a parent with other data."""
    prints, had_prints = _fingerprints(spec), _fingerprints(parent.spec)
    if prints != had_prints:
        about = f"warm_start_config: job {parent.name!r}"
        raise ConfigurationError(f"{about} has other data; give the type 'TransferLearning', or the same data")


def _static(spec: Mapping[str, Any]) -> dict[str, Any]:
    return dict(spec["estimator"].get("hyperparameters") or {})


def _fingerprints(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {channel: source.get("fingerprint") for channel, source in spec["inputs"].items()}


def _results(parent: JobRow, spec: Mapping[str, Any], store: Store, job: str) -> list[dict[str, Any]]:
    """The values of a parent's trials at their rungs and at their ends; a lost one has none at its end.

    Forks are left out: their values follow from the hyperparameters of other trials, too.
    """
    ranges = {name: range_from_json(state) for name, state in spec["hyperparameter_ranges"].items()}
    brackets = Plan.from_json(parent.plan).brackets if parent.plan else ()
    rungs = {rung for bracket in brackets for rung in bracket.rungs}
    trials = {trial.trial_id: trial for trial in store.trials(parent.name)}
    at_rungs = {  # A parent may have a million reports, so only the values at rungs stay in memory.
        trial_id: _at_rungs(parent, trials[trial_id], rungs, ((step, value) for _, step, value in curve))
        for trial_id, curve in groupby(store.curves(parent.name), key=itemgetter(0))
        if trial_id in trials
    }
    results = []
    for trial in sorted(trials.values(), key=lambda trial: trial.number):
        if trial.number < 0 or trial.parent:
            continue
        tried = _as_tried({**_static(parent.spec), **trial.hyperparameters}, ranges, spec, exact=not job)
        if tried is None:
            continue
        for resource, value in _values(parent, trial, at_rungs.get(trial.trial_id, [])):
            results.append({"hyperparameters": tried, "resource": resource, "value": value, "job": job})
    return results


def _as_tried(
    had: Mapping[str, Any], ranges: Mapping[str, ParameterRange], spec: Mapping[str, Any], *, exact: bool
) -> dict[str, Scalar] | None:
    """The hyperparameters of a trial as the new job would have them; None if it could not."""
    there = present(ranges, had)
    if not all(name in had and ranges[name].is_valid(had[name]) for name in there):
        return None
    static = {name: value for name, value in _static(spec).items() if name not in ranges}
    if exact and any(had.get(name, value) != value for name, value in static.items()):
        return None
    return {name: ranges[name].cast_to_type(had[name]) for name in there}


def _at_rungs(
    parent: JobRow, trial: TrialRow, rungs: set[int], curve: Iterable[tuple[int, float | None]]
) -> list[tuple[int, float | None]]:
    """Return what the parent compared a trial by at each rung before its end."""
    ranking = Ranking.of(parent.spec["objective_type"], parent.spec["objective_value"])
    best, values = math.nan, []
    for step, last in curve:
        if step >= trial.resource:
            break
        if last is not None and ranking.better(last, best):
            best = last
        if step in rungs:
            values.append((step, ranking.counts(last, best if math.isfinite(best) else None)))
    return values


def _values(parent: JobRow, trial: TrialRow, values: list[tuple[int, float | None]]) -> list[tuple[int, float | None]]:
    """Return what the parent compared a trial by, at each rung before its end and there."""
    if trial.status in ("Failed", "Diverged"):
        return [*values, (max(1, trial.resource), None)]
    end = objective(parent, trial)
    return [*values, (trial.resource, end)] if trial.resource and end is not None else values
