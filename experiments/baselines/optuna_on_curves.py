"""Optuna on recorded curves, asked and told as its users do, by simulated workers on one clock."""

from __future__ import annotations

import heapq
import itertools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from experiments.baselines.on_curves import Seen, mirrored
from experiments.shared.recorded_tasks import RecordedTask
from hpo.ranges import CategoricalParameter, IntegerParameter, ParameterRange


def tpe(seed: int, units: int, workers: int) -> optuna.Study:
    """TPE with the pruner that Optuna names for it; several workers look out for each other's trials, as it advises."""
    return _study(
        seed,
        optuna.samplers.TPESampler(seed=seed, constant_liar=workers > 1),
        optuna.pruners.HyperbandPruner(min_resource=1, max_resource=units, reduction_factor=3),
    )


def gaussian_process(seed: int, units: int, workers: int) -> optuna.Study:
    """Optuna's Gaussian process, whose trials all run to the end."""
    return _study(seed, optuna.samplers.GPSampler(seed=seed), optuna.pruners.NopPruner())


def simulate(
    task: RecordedTask, make: Callable[[int, int, int], optuna.Study], *, seed: int, workers: int, seconds: float
) -> Seen:
    """A study of one task, until a time on the simulated clock.

    Each worker asks for a trial as soon as it is free, and reports every unit. A trial that diverged fails, as one that
    returns NaN does. A suggestion becomes the nearest recorded configuration that none was before, and the study is
    told of that one, as our own searches are.

    Args:
        task: what is searched; more is better.
        make: the study, from the seed, the units of a whole trial, and the number of workers.
        seed: of the study.
        workers: that train at once.
        seconds: when it ends.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        study = make(seed, task.curves.units, workers)
        sampler = OnTable(study.sampler, task)
        study.sampler = sampler
        return _run(task, study, sampler, workers, seconds)


def _study(seed: int, sampler: optuna.samplers.BaseSampler, pruner: optuna.pruners.BasePruner) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    # The pruner deals trials to brackets by the study's name.
    return optuna.create_study(direction="maximize", sampler=sampler, pruner=pruner, study_name=f"search-{seed}")


def _run(task: RecordedTask, study: optuna.Study, sampler: OnTable, workers: int, seconds: float) -> Seen:
    seen, order, curves = Seen(), itertools.count(), task.curves
    events: list[tuple[float, int, optuna.Trial, int, int]] = []
    """When a unit of a trial ends, the trial, its curve, and the unit."""

    def begin(now: float) -> None:
        trial = study.ask(sampler.space)
        row = sampler.rows[trial.number]
        heapq.heappush(events, (now + curves.seconds[row, 1], next(order), trial, row, 1))

    for _ in range(workers):
        begin(0.0)
    while events[0][0] <= seconds:
        now, _, trial, row, unit = heapq.heappop(events)
        if unit >= curves.diverged_at[row]:
            study.tell(trial, state=TrialState.FAIL)
            begin(now)
            continue
        value = float(curves.values[row, unit - 1])
        seen.add(now, value)
        trial.report(value, unit)
        if unit == curves.units:
            study.tell(trial, value)
        elif trial.should_prune():
            study.tell(trial, state=TrialState.PRUNED)
        else:
            took = curves.seconds[row, unit + 1] - curves.seconds[row, unit]
            heapq.heappush(events, (now + took, next(order), trial, row, unit + 1))
            continue
        begin(now)
    return seen


class OnTable(optuna.samplers.BaseSampler):
    """A sampler whose suggestions become the nearest recorded configuration, which it is told that it suggested.

    So are our own searches: what a model learns from is what was trained.

    Args:
        inner: the sampler.
        task: what is searched.
    """

    def __init__(self, inner: optuna.samplers.BaseSampler, task: RecordedTask) -> None:
        self.rows: dict[int, int] = {}
        """The curve of each trial, by its number."""
        self.space = {name: _distribution(bounds) for name, bounds in task.ranges.items()}
        self._inner = inner
        self._task = task

    def infer_relative_search_space(
        self, study: optuna.Study, trial: optuna.trial.FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """All hyperparameters: a nearest configuration is one of all of them."""
        return self.space

    def sample_relative(
        self, study: optuna.Study, trial: optuna.trial.FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """What the sampler draws together, and by themselves those that it does not; then the nearest."""
        together = self._inner.infer_relative_search_space(study, trial)
        drawn = self._inner.sample_relative(study, trial, together)
        for name, distribution in search_space.items():
            if name not in drawn:
                drawn[name] = self._inner.sample_independent(study, trial, name, distribution)
        ranges, curves = self._task.ranges, self._task.curves
        suggested = {name: mirrored(bounds, drawn[name]) for name, bounds in ranges.items()}
        row = self.rows[trial.number] = curves.nearest(suggested, self.rows.values())
        return {name: mirrored(bounds, curves.configurations[row][name]) for name, bounds in ranges.items()}

    def sample_independent(
        self,
        study: optuna.Study,
        trial: optuna.trial.FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """As the sampler does; all of them are drawn together, so nobody asks."""
        return self._inner.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        """As the sampler does."""
        self._inner.before_trial(study, trial)

    def after_trial(
        self, study: optuna.Study, trial: optuna.trial.FrozenTrial, state: TrialState, values: Sequence[float] | None
    ) -> None:
        """As the sampler does."""
        self._inner.after_trial(study, trial, state, values)


def _distribution(bounds: ParameterRange) -> BaseDistribution:
    """A range in Optuna's form; near 1, the distance to 1 is what is searched."""
    if isinstance(bounds, CategoricalParameter):
        return CategoricalDistribution(bounds.values)
    low, high, log = bounds.min_value, bounds.max_value, bounds.resolved_scaling == "Logarithmic"
    if isinstance(bounds, IntegerParameter):
        return IntDistribution(int(low), int(high), log=log)
    if bounds.resolved_scaling == "ReverseLogarithmic":
        return FloatDistribution(1 - high, 1 - low, log=True)
    return FloatDistribution(low, high, log=log)
