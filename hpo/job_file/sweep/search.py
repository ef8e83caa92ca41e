"""Method, metric and early termination of a sweep, as the search of a job file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hpo.job_file.sweep.parameters import Parameters
from hpo.job_file.sweep.sweep_file import Sweep
from hpo.job_file.yaml_file import dotted, shown
from hpo.ranges import count_combinations
from hpo.strategies import MOST_JOBS
from trainers.checking import is_number, is_whole
from trainers.script import LENGTHS

METHODS = {"grid": "Grid", "random": "Random", "bayes": "Bayesian"}
"""The strategies of W&B's methods."""
TRIALS = 20
"""Trials of a job whose sweep has no end: as many as in the file that `hpo init` writes."""
ETA = 3
"""What W&B takes where a sweep has no `eta`."""

_STOPPING = ("type", "min_iter", "max_iter", "s", "eta", "strict")


def tuning_of(
    sweep: Sweep, parameters: Parameters, hyperparameters: Mapping[str, Any], units: int | None
) -> dict[str, Any]:
    """The search of a job file, as far as the sweep makes one.

    Args:
        sweep: notes and problems are left in it.
        parameters: of the sweep.
        hyperparameters: the trainer's, static.
        units: reports of a full trial, if somebody said so.
    """
    found = _objective(sweep)
    method = sweep.values.get("method")
    if method not in METHODS:
        remedy = "; give grid, random or bayes"
        sweep.refuse(("method",), f"method is {'missing' if method is None else shown(method)}{remedy}")
        return found
    strategy = METHODS[method]
    whole = units or _length(parameters, hyperparameters)
    if sweep.values.get("early_terminate") is not None:
        found |= _stopping(sweep, method, units, whole)
    elif whole is None:
        _refuse_length(sweep, ("parameters",))
    else:
        found["strategy"] = strategy
        if units is not None:
            sweep.note((), f"--units: every trial trains {units} units, as trainer.length says")
    if strategy == "Grid":
        _check_grid(sweep, parameters)
    else:
        found["max_jobs"] = _trials(sweep)
    sweep.note((), "how many agents run is not in a sweep: max_parallel_jobs is 1")
    return {**found, "max_parallel_jobs": 1, "ranges": parameters.ranges}


def _objective(sweep: Sweep) -> dict[str, Any]:
    problems = len(sweep.problems)
    metric = sweep.group("metric")
    if len(sweep.problems) > problems:
        return {}
    sweep.check_known(metric, ("name", "goal", "target", "impute", "impute_while_running"), "metric")
    name, goal, target = metric.get("name"), metric.get("goal", "minimize"), metric.get("target")
    if not isinstance(name, str) or not name:
        told = "missing" if name is None else shown(name)
        sweep.refuse(("metric", "name"), f"metric.name is {told}; give the name of what trials are compared by")
    if goal not in ("minimize", "maximize"):
        sweep.refuse(("metric", "goal"), f"metric.goal is {shown(goal)}; give minimize or maximize")
    if "goal" not in metric:
        sweep.note(("metric",), "metric.goal is minimize, as it is for W&B where a sweep has none")
    for key in ("impute", "impute_while_running"):
        if key in metric:
            sweep.note(("metric", key), f"metric.{key} is left out: a trial without a value counts as failed")
    found = {"objective_metric_name": name, "objective_type": str(goal).title()}
    if target is None:
        return found
    if not is_number(target):
        sweep.refuse(("metric", "target"), f"metric.target is {shown(target)}; give a number")
    sweep.note(("metric", "target"), f"metric.target ends the job at {target}, with the trials that run then")
    return {**found, "completion": {"target_objective_metric_value": target}}


def _length(parameters: Parameters, hyperparameters: Mapping[str, Any]) -> int | None:
    """Units of the longest trial, by the parameters that say so."""
    for name in LENGTHS:
        bounds = parameters.ranges.get(name)
        values = [hyperparameters.get(name)] if bounds is None else bounds.get("values", [bounds.get("max")])
        counts = [value for value in values if is_whole(value, 1)]
        if counts:
            return max(counts)
    return None


def _refuse_length(sweep: Sweep, keys: tuple[str, ...]) -> None:
    sweep.refuse(
        keys,
        f"{dotted(keys)}: nothing says how often a trial reports its metric: no parameter is called "
        f"{', '.join(LENGTHS)}; give --units N, at least as many as a run logs",
    )


def _hyperband(method: str, least: int, most: int, eta: int) -> dict[str, Any]:
    config = {"max_resource": most, "min_resource": least, "reduction_factor": eta}
    return {
        "strategy": "Hyperband",
        "hyperband": {**config, "suggestions": "model" if method == "bayes" else "random"},
    }


def _stopping(sweep: Sweep, method: str, units: int | None, whole: int | None) -> dict[str, Any]:
    key, problems = "early_terminate", len(sweep.problems)
    given = sweep.group(key)
    sweep.check_known(given, _STOPPING, key)
    if given.get("type") != "hyperband":
        sweep.refuse((key, "type"), f"{key}.type is {shown(given.get('type'))}; give hyperband, which W&B has alone")
    if method == "grid":
        text = f"{key} with method grid: strategy Grid trains every trial to its end; leave it out, or give method"
        sweep.refuse((key,), f"{text}: random")
    counts: dict[str, Any] = {
        name: given.get(name) for name in ("min_iter", "max_iter", "s", "eta") if given.get(name) is not None
    }
    for name, value in counts.items():
        least = 2 if name == "eta" else 1
        if not is_number(value) or value != int(value) or value < least:
            text = f"{key}.{name} is {shown(value)}; give a whole number, {least} or more"
            sweep.refuse((key, name), text)
    if len(sweep.problems) > problems:
        return {}
    least, most = _rungs(sweep, {name: int(value) for name, value in counts.items()}, units, whole)
    if not least or not most:
        return {}
    eta = int(counts.get("eta", ETA))
    if "eta" not in counts:
        sweep.note((key,), f"eta is {ETA}, as it is for W&B where a sweep has none")
    if "strict" in given:
        sweep.note((key, "strict"), f"{key}.strict is left out: one trial in {eta} goes on from a rung, always")
    sweep.note(
        (key,),
        f"trials pause at rungs of {least} to {most} reports of the metric, and end at {most}; one that goes on is "
        "started again, from what it wrote to SM_CHECKPOINT_DIR. W&B stops runs while they train",
    )
    return _hyperband(method, least, most, eta)


def _rungs(sweep: Sweep, counts: Mapping[str, int], units: int | None, whole: int | None) -> tuple[int, int]:
    """The first rung and the last; zeros where the sweep has none."""
    key, eta = "early_terminate", counts.get("eta", ETA)
    least, last, steps = counts.get("min_iter"), counts.get("max_iter"), counts.get("s")
    if last is not None and (steps is not None or least is None):
        if steps is None:
            sweep.refuse((key, "s"), f"{key}.s is missing beside max_iter; give the number of rungs before it")
            return 0, 0
        rungs = [last // eta**place for place in range(1, min(steps, last) + 1) if last >= eta**place]
        if not rungs:
            text = f"{key}.max_iter is {last}, less than eta, {eta}, so no trial is stopped; give more, or leave it out"
            sweep.refuse((key, "max_iter"), text)
            return 0, 0
        if least is not None:
            sweep.note((key, "min_iter"), f"{key}.min_iter is left out, as W&B does beside max_iter")
        return rungs[-1], units or last
    if least is None:
        sweep.refuse((key,), f"{key} has neither min_iter nor max_iter; give max_iter and s")
        return 0, 0
    most = units or last or whole
    if most is None:
        _refuse_length(sweep, (key,))
        return 0, 0
    if least > most:
        sweep.refuse((key, "min_iter"), f"{key}.min_iter is {least}, and a trial ends at {most}; give less")
    return least, most


def _trials(sweep: Sweep) -> int:
    cap = sweep.values.get("run_cap")
    if cap is None:
        text = f"run_cap is not given, and W&B's sweep goes on until somebody stops it: max_jobs is {TRIALS}"
        sweep.note((), text)
        return TRIALS
    return cap if _checked_cap(sweep, cap) else TRIALS


def _checked_cap(sweep: Sweep, cap: object) -> bool:
    if not is_whole(cap, 1, MOST_JOBS):
        sweep.refuse(("run_cap",), f"run_cap is {shown(cap)}; give a whole number from 1 to {MOST_JOBS}")
        return False
    return True


def _check_grid(sweep: Sweep, parameters: Parameters) -> None:
    endless = [name for name, bounds in parameters.parameters.items() if bounds.size is None]
    for name in endless:
        where = dotted(parameters.keys[name])
        text = f"{where} has no end of values, and method is grid; give values, or distribution q_uniform"
        sweep.refuse(parameters.keys[name], text)
    cap = sweep.values.get("run_cap")
    if endless or cap is None or not _checked_cap(sweep, cap):
        return
    combinations = count_combinations(parameters.parameters, MOST_JOBS)
    if cap < combinations:
        sweep.refuse(
            ("run_cap",),
            f"run_cap is {cap}, and method grid has {combinations} combinations, which Warmband tries all; leave it "
            "out, or give method: random",
        )
    else:
        sweep.note(("run_cap",), f"run_cap is left out: the grid has {combinations} combinations")
