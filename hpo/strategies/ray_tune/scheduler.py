"""Scheduler of another library: its errors held back until all is in the record, and the rungs where it decides."""

from __future__ import annotations

from functools import partial
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.schedulers import TrialScheduler

from hpo.strategies.ray_tune.guard import Guard
from hpo.strategies.ray_tune.known import Milestones, holds, pauses
from hpo.strategies.scheduler import RESOURCE
from hpo.strategies.strategy import RungScheduler
from trainers.errors import SearchError

_ACTIONS = (TrialScheduler.CONTINUE, TrialScheduler.PAUSE, TrialScheduler.STOP)


class GuardedScheduler(TrialScheduler, RungScheduler):
    """Any scheduler of Ray Tune's.

    Args:
        scheduler: it.
        milestones: where it decides.
        guard: calls it.
    """

    def __init__(self, scheduler: TrialScheduler, *, milestones: Milestones, guard: Guard) -> None:
        TrialScheduler.__init__(self)
        self.scheduler: Any = scheduler  # Ray types its callers as its own controller.
        self._milestones = milestones
        self._guard = guard
        self._who = f"scheduler {type(scheduler).__name__}"
        self._pauses = pauses(scheduler)
        self._fresh: set[str] = set()
        """Trials that it has not chosen yet."""
        self._stopped: set[str] = set()
        self._configs: dict[str, dict[str, Any]] = {}
        """The hyperparameters of trials that live: a trial has the same from its beginning to its end."""

    # ---- what a search asks beyond Tune's interface

    def next_rung(self, trial: Trial, resource: int) -> int:
        """See `RungScheduler.next_rung`."""
        return self._milestones(trial, resource)

    def wants_another(self) -> bool:
        """See `LooksAhead.wants_another`."""
        return self._pauses and not self._fresh

    # ---- Ray Tune's interface

    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:
        """Tells it of a new trial."""
        self._fresh.add(trial.trial_id)
        given = dict(trial.config)
        self._tell("on_trial_add", tune_controller, trial)
        self._configs[trial.trial_id] = {**trial.config, **given}

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        """Its decision; a trial that it has stopped stays so, whatever else was trained meanwhile."""
        if trial.trial_id in self._stopped:
            return TrialScheduler.STOP
        action = self._tell("on_trial_result", tune_controller, trial, result, otherwise=TrialScheduler.PAUSE)
        if action == TrialScheduler.NOOP:  # It has told the controller itself, or chooses the trial when it goes on.
            return TrialScheduler.PAUSE
        if action not in _ACTIONS:
            raise_it = partial(_refuse, action)
            return str(self._guard.tell(self._who, f"a result of {trial.trial_id}", raise_it, TrialScheduler.PAUSE))
        if action == TrialScheduler.STOP:
            self._stopped.add(trial.trial_id)
        return str(action)

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        """Tells it of a failure."""
        self._leave("on_trial_error", tune_controller, trial)

    def on_trial_complete(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> None:
        """Tells it of an end, unless it has the trial for one that waits until its bracket is done."""
        if result.get(RESOURCE) and holds(self.scheduler, result[RESOURCE]):
            self._forget(trial)
            return
        self._leave("on_trial_complete", tune_controller, trial, result)

    def on_trial_remove(self, tune_controller: Any, trial: Trial) -> None:
        """Tells it that a trial was stopped while it waited."""
        self._leave("on_trial_remove", tune_controller, trial)

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        """Its choice.

        Raises:
            SearchError: it raised, now or when it was told something, or chose what cannot be trained.
        """
        chosen: Any = self._guard.ask(
            self._who, "the next trial", partial(self.scheduler.choose_trial_to_run, tune_controller)
        )
        if chosen is None:
            return None
        if not isinstance(chosen, Trial):
            raise SearchError(f"{self._who} chose {chosen!r} to be trained next; it has to be a trial, or None")
        if chosen.status not in (Trial.PENDING, Trial.PAUSED):
            return None
        config = self._configs.get(chosen.trial_id)
        if config is None:
            raise SearchError(f"{self._who} chose trial {chosen.trial_id!r}, which is none of the search's that live")
        if chosen.config != config:
            raise SearchError(
                f"{self._who} changed the hyperparameters of trial {chosen.trial_id!r} from {config} to "
                f"{chosen.config}; give one that stops or pauses trials, or PopulationBasedTraining"
            )
        self._fresh.discard(chosen.trial_id)
        return chosen

    def debug_string(self) -> str:
        """Its own words."""
        return str(self.scheduler.debug_string())

    def _leave(self, method: str, tune_controller: Any, trial: Trial, *rest: Any) -> None:
        self._forget(trial)
        self._tell(method, tune_controller, trial, *rest)

    def _forget(self, trial: Trial) -> None:
        self._fresh.discard(trial.trial_id)
        self._configs.pop(trial.trial_id, None)

    def _tell(self, method: str, tune_controller: Any, trial: Trial, *rest: Any, otherwise: Any = None) -> Any:
        call = partial(getattr(self.scheduler, method), tune_controller, trial, *rest)
        return self._guard.tell(self._who, f"{method} of {trial.trial_id}", call, otherwise)


def _refuse(action: object) -> str:
    raise ValueError(f"its answer is {action!r}, and it can be CONTINUE, PAUSE or STOP")
