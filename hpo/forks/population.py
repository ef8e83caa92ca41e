"""Population: Ray Tune's population based training, of trials that keep their hyperparameters for life.

Ray's schedulers change a trial on its way: it takes another's checkpoint and new hyperparameters, and keeps its name.
Here such a trial ends, and a fork takes its place. Ray's scheduler is shown one trial for both, a member, that is made
here; so what it does to members touches no trial of the search.

Tested with Ray 2.60, of whose `PopulationBasedTraining` and `Trial` it uses these private parts, since there is no
public way: `_time_attr`, `_perturbation_interval`, `_burn_in_period`, `_hyperparam_mutations`, `_synch`, `_log_config`,
the checkpoint manager's `_latest_checkpoint_result`, and `_schedule_trial_save`, which it calls. `tests/unit/hpo/forks`
fails if they change.
"""

from __future__ import annotations

import copy
import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

# Ray Train first: threads that enter Ray by Tune and by Train at once meet in its import cycle.
import ray.train  # noqa: F401
from ray.tune.experiment import Trial
from ray.tune.schedulers import PopulationBasedTraining, TrialScheduler

from hpo.forks.fork import Fork
from hpo.forks.global_random import seeded
from hpo.strategies import RESOURCE, Cut, Guard, check_population
from trainers.errors import ConfigurationError
from trainers.plain import plain_scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    """A member's checkpoint, for Ray's scheduler."""

    member: str
    trial_id: str
    resource: int


@dataclass(frozen=True, slots=True)
class _Saved:
    """A checkpoint in the form in which a trial of Ray Tune's holds it."""

    checkpoint: _Place


@dataclass(slots=True, kw_only=True, eq=False)
class _Member:
    """A place in the population: Ray's view of it, and the trial that has it at present."""

    shown: Trial
    trial: Trial
    result: dict[str, Any] = field(default_factory=dict)
    """Its last."""

    @property
    def checkpoint(self) -> _Place | None:
        """What Ray's scheduler would go on from."""
        held: Any = self.shown.checkpoint
        place: _Place | None = held
        return place

    @checkpoint.setter
    def checkpoint(self, place: _Place | None) -> None:
        manager: Any = self.shown.run_metadata.checkpoint_manager
        manager._latest_checkpoint_result = None if place is None else _Saved(place)


class Population(TrialScheduler):
    """Population based training over one job's trials, as a search asks its scheduler.

    All members begin before any goes on, so that the population does not depend on how many gangs there are. With
    `synch=True` all of it follows from the seed and the data; without, members are compared as they come, and what is
    decided depends on which was faster.

    Source: Jaderberg et al., "Population Based Training of Neural Networks", 2017; for PB2 Parker-Holder, Nguyen,
    Roberts, "Provably Efficient Online Hyperparameter Optimization with Population-Based Bandits", NeurIPS 2020.

    Args:
        scheduler: Ray Tune's; it is copied, and stays as it is.
        metric: result key of the objective, where the scheduler names none.
        mode: "max" or "min", where the scheduler names none.
        seed: of a decision, by how many trials there are.
        fixed: hyperparameters that a trial's checkpoint cannot go on with other values of.
        within: hyperparameters as a trial may have them, within their ranges and conditions.

    Raises:
        ConfigurationError: it decides by the clock, or changes what cannot be changed.
    """

    plan = None
    cuts: Sequence[Cut] = ()

    def __init__(
        self,
        scheduler: PopulationBasedTraining,
        *,
        metric: str,
        mode: str,
        seed: Callable[[int], int],
        fixed: Collection[str] = (),
        within: Callable[[Mapping[str, Any]], dict[str, Any]] = dict,
    ) -> None:
        check_population(scheduler, fixed)
        self._inner: Any = copy.deepcopy(scheduler)
        self._inner.set_search_properties(metric, None)
        self._inner.set_search_properties(None, mode)
        # It speaks of members by the names of trials that may have ended; the record says what came of what.
        logging.getLogger(PopulationBasedTraining.__module__).setLevel(logging.WARNING)
        self._inner._log_config = False  # It writes files of its own; the record has what they would say.
        self._seed, self._within = seed, within
        self._guard = Guard(0)  # Its own random numbers are nobody's: each decision is seeded.
        self._who = f"scheduler {type(scheduler).__name__}"
        self._members: dict[str, _Member] = {}
        self._of: dict[str, _Member] = {}
        """The member that each trial belongs to."""
        self._forks: list[Fork] = []

    @classmethod
    def of(cls, scheduler: TrialScheduler, **options: Any) -> Self | None:
        """A scheduler that changes trials on their way, with the other arguments; None for any other."""
        return cls(scheduler, **options) if isinstance(scheduler, PopulationBasedTraining) else None

    @property
    def synchronous(self) -> bool:
        """Whether members wait for each other, so that nothing depends on timing."""
        return bool(self._inner._synch)

    def forks(self) -> list[Fork]:
        """The forks decided since this was last asked; who carries one out calls `take_over`."""
        decided, self._forks = self._forks, []
        return decided

    def refuse(self, fork: Fork, error: ConfigurationError) -> None:
        """A fork cannot be made; the next choice raises why."""
        self._guard.tell(self._who, f"that {fork.trial_id} goes on from {fork.parent}", partial(_raised, error), None)

    def take_over(self, fork: Fork, trial: Trial) -> None:
        """A trial has taken the place of one that ended."""
        member = self._of[fork.trial_id]
        member.trial = trial
        member.shown.set_config({**member.shown.config, **trial.config})
        self._of[trial.trial_id] = member

    # ---- what a search asks beyond Tune's interface: `hpo.strategies.RungScheduler`

    def next_rung(self, trial: Trial, resource: int) -> int:
        """The units at which Ray's scheduler next looks at a member: the same for all, whoever was forked from whom."""
        interval = float(self._inner._perturbation_interval)
        rung = math.ceil(max(interval, float(self._inner._burn_in_period)))
        while rung <= resource:
            rung = math.ceil(rung + interval)
        return rung

    def bracket(self, trial: Trial) -> None:
        """None: there are no brackets."""

    def no_more_trials(self, tune_controller: Any) -> None:
        """Nobody waits for another trial: all are there from the beginning."""

    def set_gate(self, may_go_on: Callable[[Trial], bool]) -> None:
        """There are no rungs at which somebody else would say who goes on."""

    def waits(self, trial: Trial) -> bool:
        """See `Waits.waits`: a member has reported further than another that lives, which has still to come there."""
        at = self._of[trial.trial_id].result.get(RESOURCE, 0)
        live = [member for member in self._members.values() if not member.trial.is_finished()]
        return self.synchronous and any(member.result.get(RESOURCE, 0) < at for member in live)

    def wants_another(self) -> bool:
        """See `LooksAhead.wants_another`: always, so that all begin before one goes on."""
        return True

    # ---- Ray Tune's interface

    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:
        """Makes a new trial a member. It gets what is missing of the hyperparameters that are changed later."""
        shown = Trial("warmband", trial_id=trial.trial_id, config=dict(trial.config), stub=True)
        self._members[trial.trial_id] = self._of[trial.trial_id] = _Member(shown=shown, trial=trial)
        self._guard.tell(self._who, f"on_trial_add of {trial.trial_id}", partial(self._add, shown), None)
        shown.set_config({name: plain_scalar(value) for name, value in shown.config.items()})
        drawn = self._within(shown.config)  # A hyperparameter whose condition is not met is none of the trial's.
        trial.config.update({name: value for name, value in drawn.items() if name not in trial.config})

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        """What Ray's scheduler says, but STOP for a trial that a fork takes the place of; `forks` has those."""
        member = self._of[trial.trial_id]
        member.result = result
        member.checkpoint = _Place(member=member.shown.trial_id, trial_id=trial.trial_id, resource=result[RESOURCE])
        action = self._tell(member)
        ended = any(fork.trial_id == trial.trial_id for fork in self._forks)
        return TrialScheduler.STOP if ended else action

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        """A member is lost; the others do not wait for it."""
        self._left()

    def on_trial_complete(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> None:
        """A member has come to its end; the others do not wait for it."""
        self._left()

    def on_trial_remove(self, tune_controller: Any, trial: Trial) -> None:
        """A member was stopped; the others do not wait for it."""
        self._left()

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        """The member that is furthest behind; None if all train, or wait for one that does.

        Raises:
            SearchError: Ray's scheduler raised, now or when it was told something, or a fork could not be made.
        """
        shown = self._guard.ask(self._who, "the next trial", self._look)
        return None if shown is None else self._members[shown.trial_id].trial

    def debug_string(self) -> str:
        """A line of Ray's scheduler."""
        return str(self._inner.debug_string())

    # ---- the controller that Ray's scheduler sees

    search_alg = None

    def get_trials(self) -> list[Trial]:
        """All members."""
        return [member.shown for member in self._members.values()]

    def get_live_trials(self) -> set[Trial]:
        """Those that have not ended."""
        return {shown for shown in self.get_trials() if not shown.is_finished()}

    def pause_trial(self, trial: Trial, should_checkpoint: bool = True) -> None:
        """Lets a member wait."""
        trial.set_status(Trial.PAUSED)

    def _schedule_trial_save(self, trial: Trial, result: dict[str, Any] | None = None) -> Any:
        """A member that has reported has a checkpoint of just then."""
        return trial.checkpoint

    # ---- within

    def _deciding(self) -> Any:
        """Ray's scheduler draws from global generators: let each decision draw by its place in the search."""
        return seeded(self._seed(len(self._of)))

    def _look(self) -> Trial | None:
        """What Ray's scheduler would train next, as things stand."""
        for member in self._members.values():
            if member.shown.status != member.trial.status:
                member.shown.set_status(member.trial.status)
        chosen: Trial | None = self._inner.choose_trial_to_run(self)
        return chosen

    def _add(self, shown: Trial) -> None:
        with self._deciding():
            self._inner.on_trial_add(self, shown)

    def _tell(self, member: _Member) -> str:
        """The word of Ray's scheduler on a member's result; PAUSE once it has raised, which ends the search."""
        what = f"on_trial_result of {member.trial.trial_id}"
        return self._guard.tell(self._who, what, partial(self._decide, member), TrialScheduler.PAUSE)

    def _decide(self, member: _Member) -> str:
        self._guard.check()
        self._look()
        with self._deciding():
            action: str = self._inner.on_trial_result(self, member.shown, member.result)
        for each in self._members.values():
            place = each.checkpoint
            if place is not None and place.member != each.shown.trial_id:
                config = {name: plain_scalar(value) for name, value in each.shown.config.items()}
                each.shown.set_config(dict(config))
                each.checkpoint = None
                self._forks.append(
                    Fork(trial_id=each.trial.trial_id, parent=place.trial_id, resource=place.resource, config=config)
                )
        return action

    def _left(self) -> None:
        """Where the others waited for a member that is gone, Ray's scheduler would for ever: it is told once more."""
        if self._guard.tell(self._who, "that a trial has ended", self._look, None) is not None:
            return
        live = [member for member in self._members.values() if not member.shown.is_finished()]
        if live and all(member.shown.status == Trial.PAUSED for member in live):
            self._tell(live[0])


def _raised(error: ConfigurationError) -> None:
    raise error
