"""Effects: the units from which hyperparameters take effect; until then, trials that differ in none else are alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from hpo.ranges import IntegerParameter, ParameterRange
from trainers.checking import did_you_mean, is_whole
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    from ray.tune.schedulers import TrialScheduler

MOST_UNITS = 50
"""Units at which trials may part: each trial is checkpointed at those before its last hyperparameter takes effect."""

_TOO_MANY = f"and are checkpointed at each; give at most {MOST_UNITS}, as IntegerParameter(10, 30, step=10) has 3"
_EXAMPLE = "{'eta_after': 'decay_at'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """Units from which hyperparameters take effect.

    One that takes effect at unit 10 makes no difference to the first 10 units.

    Args:
        begins: by name of a hyperparameter, the unit, or the hyperparameter whose value it is; all others take effect
            from the beginning.
        units: units at which trials may part, beside those that are a trial's own values.
    """

    begins: Mapping[str, int | str]
    units: tuple[int, ...] = ()

    @classmethod
    def of(
        cls, begins: Mapping[str, int | str], ranges: Mapping[str, ParameterRange], static: Mapping[str, Any]
    ) -> Self:
        """The effects that a job declares, as `check_effects` lets pass.

        Trials that differ in `decay_at` alone are alike until the least of the two values. So all of them are cut at
        every value that one of them may have, be it the trainer's own where a range's condition is not met.
        """
        units: set[Any] = {unit for unit in begins.values() if not isinstance(unit, str)}
        tuned = {name for name in begins.values() if isinstance(name, str) and name in begins and name in ranges}
        units.update(value for name in tuned for value in ranges[name].members())
        units.update(static[name] for name in tuned if ranges[name].when and static.get(name))
        return cls(begins=begins, units=tuple(sorted(units)))

    def at(self, name: str, config: Mapping[str, Any]) -> int:
        """The unit from which a hyperparameter of a configuration takes effect; 0 is the beginning."""
        begins = self.begins.get(name, 0)
        return int(config.get(begins, 0)) if isinstance(begins, str) else begins

    def before(self, unit: int, hyperparameters: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, Any]:
        """Those of a trial's tuned values that take effect before a unit, in the order of their names.

        Args:
            unit: which.
            hyperparameters: the tuned values.
            config: static and tuned values together.
        """
        return {name: hyperparameters[name] for name in sorted(hyperparameters) if self.at(name, config) < unit}

    def last(self, config: Mapping[str, Any]) -> int:
        """The unit from which all of a configuration takes effect: trials that are alike until then are alike."""
        return max((self.at(name, config) for name in self.begins if name in config), default=0)

    def next_split(self, resource: int, config: Mapping[str, Any]) -> int | None:
        """The next unit at which a trial may part from others; None once all of it has taken effect."""
        own = (self.at(name, config) for name in self.begins if name in config)
        last = self.last(config)
        return min((unit for unit in (*self.units, *own) if resource < unit <= last), default=None)


def check_effects(
    begins: object,
    ranges: Mapping[str, ParameterRange],
    static: Mapping[str, Any],
    fixed: Collection[str],
    obstacle: Callable[[str], str],
) -> None:
    """Refuses a declaration of effects that is none.

    Args:
        begins: as `takes_effect` of a job; None is none.
        ranges: of the job.
        static: the trainer's own hyperparameters.
        fixed: hyperparameters that a trial's checkpoint cannot go on with other values of.
        obstacle: why the trainer has a hyperparameter take effect from the first unit on; empty if it may do so later.

    Raises:
        ConfigurationError: naming the hyperparameter, what is wrong with it, and what to give.
    """
    if begins is None:
        return
    if not isinstance(begins, Mapping) or not begins:
        raise ConfigurationError(
            f"takes_effect is {begins!r}; give a dict of hyperparameters and the units from which they take effect, "
            f"such as {_EXAMPLE}, or leave it out"
        )
    known = [*ranges, *(name for name in static if name not in ranges)]
    for name, unit in begins.items():
        if name not in known:
            raise ConfigurationError(
                f"takes_effect has {name!r}, which is no hyperparameter of the job; give one of {', '.join(known)}"
                f"{did_you_mean(name, known)}"
            )
        if name in fixed:
            raise ConfigurationError(
                f"takes_effect has {name!r}, and no trial can go on from a checkpoint with another value of it; leave "
                "it out: it takes effect from the beginning"
            )
        if why := obstacle(name):
            alone = all(other in fixed or obstacle(other) for other in begins if other in known)
            raise ConfigurationError(
                f"takes_effect[{name!r}] is {unit!r}, and {why}; trials would share what they train differently: leave "
                f"{'takes_effect' if alone else 'it'} out"
            )
        if isinstance(unit, str):
            _check_units(name, begins, known, ranges, static)
        elif not is_whole(unit, 1):
            raise ConfigurationError(
                f"takes_effect[{name!r}] is {unit!r}; give a whole number, 1 or more, or the name of the "
                "hyperparameter whose value it is"
            )
    if len(units := Effects.of(begins, ranges, static).units) > MOST_UNITS:
        raise ConfigurationError(f"takes_effect: trials may part at {len(units)} units, {_TOO_MANY}")


def check_keeps_trials(begins: Mapping[str, Any] | None, scheduler: TrialScheduler) -> None:
    """Refuses effects beside a scheduler that changes hyperparameters on the way, so that nobody knows them before.

    Args:
        begins: as `takes_effect` of a job.
        scheduler: of the job.

    Raises:
        ConfigurationError: it does.
    """
    # Imported here: a job file is checked without waiting for Ray.
    from ray.tune.schedulers import PopulationBasedTraining

    if begins and isinstance(scheduler, PopulationBasedTraining):
        raise ConfigurationError(
            f"takes_effect is {dict(begins)!r}, and scheduler {type(scheduler).__name__} changes hyperparameters on "
            "the way: its forks are its schedules; leave takes_effect out"
        )


def _check_units(
    name: str,
    begins: Mapping[str, Any],
    known: Sequence[str],
    ranges: Mapping[str, ParameterRange],
    static: Mapping[str, Any],
) -> None:
    """Refuses a hyperparameter whose values are no units."""
    unit = begins[name]
    what = f"takes_effect[{name!r}] is {unit!r}"
    if unit not in known:
        raise ConfigurationError(
            f"{what}, which is no hyperparameter of the job; give a number of units, or one of {', '.join(known)}"
            f"{did_you_mean(unit, known)}"
        )
    bounds = ranges.get(unit)
    remedy = (
        "give one whose values are whole numbers of units, such as IntegerParameter(10, 30, step=10) or "
        "CategoricalParameter([10, 20, 30])"
    )
    if bounds is not None and not _are_units(bounds):
        raise ConfigurationError(f"{what}, and {unit!r} is {bounds!r}; {remedy}")
    # Where a range's condition is not met, a trial has the trainer's own value.
    if (bounds is None or bounds.when) and unit in static and not is_whole(static[unit], 0):
        where = "" if bounds is None else f" where {unit!r} has no value of its range {bounds!r}"
        raise ConfigurationError(f"{what}, and {unit!r} is {static[unit]!r}{where}; {remedy}")
    if bounds is not None and unit in begins and (bounds.size or 0) > MOST_UNITS:
        raise ConfigurationError(f"{what}, and trials may part at {bounds.size} units of {bounds!r}, {_TOO_MANY}")


def _are_units(bounds: ParameterRange) -> bool:
    """Whether all values of a range are numbers of units."""
    if isinstance(bounds, IntegerParameter):
        return bounds.min_value >= 0
    return bounds.size is not None and all(is_whole(value, 0) for value in bounds.members())
