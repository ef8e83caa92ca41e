"""Strategy: how a job searches; and rung scheduler: what a search asks of a scheduler beside Ray Tune's interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

from hpo.ranges import ParameterRange
from hpo.strategies.hyperband import Cut, Plan

if TYPE_CHECKING:
    from ray.tune.experiment import Trial
    from ray.tune.schedulers import TrialScheduler
    from ray.tune.search import Searcher

    from hpo.suggestions import Observation


def unsaid(hyperparameters: Mapping[str, Any]) -> int | None:
    """No length, where a configuration says none."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a strategy is made ready for: one job's search.

    Args:
        plan: its brackets.
        ranges: a range a tuned hyperparameter.
        metric: the objective, as reports name it.
        mode: "max" or "min".
        seed: everything random derives from it.
        parallel: trials at once.
        length: units that a configuration asks for, static and tuned values together; None where it does not say.
        static_names: hyperparameters that the trainer has beside the tuned ones.
        fixed_names: hyperparameters that a trial's checkpoint cannot go on with other values of.
        in_process: trials train in this process, where nothing else may calculate meanwhile.
        earlier: results of earlier jobs, for a strategy that learns.
    """

    plan: Plan
    ranges: Mapping[str, ParameterRange]
    metric: str
    mode: str
    seed: int
    parallel: int = 1
    length: Callable[[Mapping[str, Any]], int | None] = unsaid
    static_names: Sequence[str] = ()
    fixed_names: Sequence[str] = ()
    in_process: bool = False
    earlier: Sequence[Observation] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A strategy made ready for one job."""

    searcher: Searcher
    scheduler: TrialScheduler
    plan: Plan


class Strategy(ABC):
    """How a job searches: which trials there are, and when one of them stops.

    A subclass of it is made with keyword arguments, which are JSON, and gives them as its `options`. Its module is
    imported where a job file is checked, so it imports Ray in `prepare` alone.
    """

    rations: ClassVar[bool] = False
    """Whether it says how long each trial trains: hyperparameters of the trainer then do not, nor do other rules."""

    trains_once: ClassVar[bool] = False
    """Whether it is no search: one configuration is trained once, and compared with nothing."""

    @property
    def stops(self) -> bool:
        """Whether it stops trials itself, so that the median rule does not."""
        return self.rations

    @property
    def stops_only(self) -> bool:
        """Whether what stops trials lets none wait: one that is not stopped goes on at once, where it stands."""
        return False

    @property
    def bound(self) -> str:
        """Why no other process can make it again out of a record, with the remedy; empty where one can."""
        return ""

    @property
    def learns(self) -> bool:
        """Whether results decide what it tries next, so that those of earlier jobs are of use to it."""
        return False

    @property
    def depends_on_timing(self) -> bool:
        """Whether decisions follow from the order in which results come, which the record of a job then keeps.

        Such a job, resumed, is told its results in that order once more, so what was decided stays. But another run of
        the same seed may decide otherwise.
        """
        return False

    @property
    def options(self) -> dict[str, Any]:
        """What it was made with, for the record; empty where nothing was said."""
        return {}

    @property
    def refuses_repeats(self) -> str:
        """Why configurations cannot be trained several times and compared by means, and a remedy; empty: they can."""
        if self.depends_on_timing:
            return "it decides of each trial as it comes; leave repeats out, or give the strategy Hyperband"
        return ""

    @property
    def refuses_given(self) -> str:
        """Why values that a person gives for a trial cannot go over the searcher's, and a remedy; empty: they can."""
        return ""

    def trials(self, ranges: Mapping[str, ParameterRange], max_jobs: int | None) -> int:
        """How many trials a job has.

        Args:
            ranges: a range a tuned hyperparameter.
            max_jobs: as it was asked for; None where nothing was said, which is one trial.

        Raises:
            ConfigurationError: these ranges have other trials.
        """
        return max_jobs or 1

    @abstractmethod
    def plan(self, ranges: Mapping[str, ParameterRange], max_jobs: int, units: int | None) -> Plan:
        """The brackets of a job, known before it starts.

        Args:
            ranges: a range a tuned hyperparameter.
            max_jobs: trials in all, for which there has to be a place in a bracket each.
            units: how long the trainer's own hyperparameters let a trial train, if they say.

        Raises:
            ConfigurationError: such a job cannot be searched so.
        """

    @abstractmethod
    def grown(self, plan: Plan, max_jobs: int) -> Plan:
        """The brackets of a job that is to have more trials than it was planned for; what was decided stays right.

        Args:
            plan: the job's so far.
            max_jobs: trials in all, more than the plan's.
        """

    def warnings(self, plan: Plan) -> Sequence[str]:
        """What of it changes nothing in a job of these brackets."""
        return ()

    @abstractmethod
    def prepare(self, task: Task) -> Prepared:
        """The searcher and the scheduler of a job. A job that is resumed asks once more, and they decide anew."""


@runtime_checkable
class Learner(Protocol):
    """What a search tells a searcher that learns from results, beside Ray Tune's interface."""

    def begun(self, trial_id: str, hyperparameters: Mapping[str, Any]) -> None:
        """A trial was begun with these tuned values; after a resume they come from the record, and nobody asked."""


@runtime_checkable
class Believer(Protocol):
    """What a search asks of a searcher with a model."""

    def believed(self) -> Mapping[str, Any]:
        """What it expected of the configuration that it suggested last, as `TrialRow.believed` has it."""


@runtime_checkable
class RungScheduler(Protocol):
    """What a search asks of a scheduler that knows in advance where it decides.

    As it is here, it is answered for one that does not: such a scheduler has no brackets, and decides at every unit.
    """

    @property
    def plan(self) -> Plan | None:
        """Its brackets; None where they are not known."""
        return None

    @property
    def cuts(self) -> Sequence[Cut]:
        """Every rung decided so far, in the order of decision."""
        return ()

    def next_rung(self, trial: Trial, resource: int) -> int:
        """The units at which the next assignment of a trial ends, which goes on from `resource` units."""
        return resource + 1

    def bracket(self, trial: Trial) -> int | None:
        """The index of a trial's bracket in the plan, if there are any."""
        return None

    def no_more_trials(self, tune_controller: Any) -> None:
        """The searcher has nothing left, so that nobody waits for another trial."""
        return

    def set_gate(self, may_go_on: Callable[[Trial], bool]) -> None:
        """Something else says, too, whether a trial may train on from the rung where it stands."""
        return


@runtime_checkable
class LooksAhead(Protocol):
    """What a search asks a scheduler that takes those trials which it has been shown for all that there are."""

    def wants_another(self) -> bool:
        """Whether it has to be shown another new trial before it chooses, as Ray Tune shows its schedulers one."""


@runtime_checkable
class Waits(Protocol):
    """What a search asks a scheduler at whose rungs trials wait for others."""

    def waits(self, trial: Trial) -> bool:
        """Whether a trial has come to a rung, and it is not decided yet whether it goes on."""


@runtime_checkable
class GivesUp(Protocol):
    """What a search tells a searcher to which a trial that a person stopped is none that was as bad as it stood."""

    def gave_up(self, trial_id: str) -> None:
        """A trial ended between two rungs as a person stopped it: it has the values of its rungs, and no others."""


class EveryUnit(RungScheduler):
    """The rungs of a scheduler that has none."""


def rungs_of(scheduler: TrialScheduler) -> RungScheduler:
    """A scheduler as a search asks it for rungs."""
    return scheduler if isinstance(scheduler, RungScheduler) else EveryUnit()
