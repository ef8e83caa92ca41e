"""Hyperband in Ray Tune: a subclass of `HyperBandScheduler` with the decisions of `hpo.strategies.hyperband`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

# Ray Train first: threads that enter Ray by Tune and by Train at once meet in its import cycle.
import ray.train  # noqa: F401
from ray.tune.experiment import Trial
from ray.tune.schedulers import HyperBandScheduler, TrialScheduler

from hpo.strategies.hyperband import Cut, Hyperband, Plan, State
from hpo.strategies.median_rule import MedianRule
from hpo.strategies.repeats import Core, Repeated, configurations_of
from trainers.errors import ConfigurationError

RESOURCE = "resource"
"""The result key that counts units over a trial's life; Tune's `training_iteration` counts from 1 after a pause."""


class SynchronousHyperBandScheduler(HyperBandScheduler):
    """Synchronous Hyperband over a plan that is laid out beforehand.

    It keeps the interface of Ray Tune's scheduler and replaces its decisions. The stock scheduler fills its brackets
    from the one that stops nothing, halves them before they are full, waits for ever when a trial fails after a
    halving (`is_being_processed`, ray 2.60), and does not survive a restart (ray-project/ray#30838, #39900). This one
    is not restored either: a job that is taken up decides anew, on what `hpo.jobs.replay` answers.

    Over a plan whose trials are stopped `apart`, the median rule decides in Hyperband's place; over one with repeats,
    either decides of configurations.

    Args:
        plan: brackets and rungs, from `hpo.strategies.hyperband.lay_out`.
        metric: result key of the objective; None where Tune sets it.
        mode: "max" or "min"; None where Tune sets it.
        time_attr: result key that counts resource units, absolute over a trial's life.
    """

    def __init__(
        self, plan: Plan, *, metric: str | None = None, mode: str | None = None, time_attr: str = RESOURCE
    ) -> None:
        super().__init__(time_attr=time_attr, metric=metric, mode=mode, max_t=plan.max_resource)
        self.plan = plan
        self._core: Core | None = None
        self._trials: dict[str, Trial] = {}
        self._may_go_on: Callable[[Trial], bool] = lambda trial: True

    # ---- what a search asks beyond Tune's interface: `hpo.strategies.strategy.RungScheduler`

    @property
    def cuts(self) -> Sequence[Cut]:
        """Every rung decided so far, in the order of decision."""
        return self.core.cuts

    def milestone(self, trial: Trial) -> int:
        """The units at which `trial` next waits, or ends."""
        return self.core.milestone(trial.trial_id)

    def next_rung(self, trial: Trial, resource: int) -> int:
        """See `RungScheduler.next_rung`: a trial's milestone, or, where it starts again, a rung before that."""
        return self.core.next_rung(trial.trial_id, resource)

    def bracket(self, trial: Trial) -> int:
        """The index of its bracket in the plan."""
        return self.core.bracket(trial.trial_id)

    def waits(self, trial: Trial) -> bool:
        """See `Waits.waits`."""
        return self.core.state(trial.trial_id) is State.WAITING

    def no_more_trials(self, tune_controller: Any) -> None:
        """The searcher has nothing left: brackets that are not full count as full."""
        self._carry_out(tune_controller, self.core.close(), current=None)

    def set_gate(self, may_go_on: Callable[[Trial], bool]) -> None:
        """See `RungScheduler.set_gate`."""
        self._may_go_on = may_go_on

    @property
    def core(self) -> Core:
        """The pure decisions; made when the mode is known."""
        if self._core is None:
            if not self._metric or self._mode not in ("max", "min"):
                raise ConfigurationError(
                    f"the scheduler's metric is {self._metric!r} and its mode {self._mode!r}; "
                    "give both here or in the tuner, mode as 'max' or 'min'"
                )
            core = self._made(maximize=self._mode == "max")
            self._core = core if self.plan.repeats == 1 else Repeated(core, self.plan)
        return self._core

    def _made(self, *, maximize: bool) -> Core:
        return (MedianRule if self.plan.apart else Hyperband)(configurations_of(self.plan), maximize=maximize)

    # ---- Ray Tune's interface

    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:
        """Puts a new trial into its bracket."""
        self.core.add(trial.trial_id)
        self._trials[trial.trial_id] = trial

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        """CONTINUE below the next rung; there PAUSE, STOP, or CONTINUE if it was the last and goes on."""
        core, trial_id = self.core, trial.trial_id
        resource = int(result[self._time_attr])
        value = float(result.get(self._metric or "", math.nan))
        if decided := core.report(trial_id, resource, value):
            self._carry_out(tune_controller, decided, current=trial)
        state = core.state(trial_id)
        if state is State.TRAINING:
            return TrialScheduler.CONTINUE
        return TrialScheduler.PAUSE if state is State.WAITING else TrialScheduler.STOP

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        """Takes a failed trial out of its bracket, which may decide the others of its rung."""
        self._carry_out(tune_controller, self.core.fail(trial.trial_id), current=trial)

    def on_trial_complete(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> None:
        """Takes a trial that ended by itself out of its bracket; its place is not filled again."""
        self._carry_out(tune_controller, self.core.finish(trial.trial_id), current=trial)

    def on_trial_remove(self, tune_controller: Any, trial: Trial) -> None:
        """Takes a trial that was stopped out of its bracket; nobody is compared with it at the rung that it leaves."""
        self._carry_out(tune_controller, self.core.fail(trial.trial_id), current=trial)

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        """The waiting trial of the earliest bracket, furthest rung first; None if all that may train do."""
        for trial_id in self.core.runnable():
            trial = self._trials.get(trial_id)
            if trial is not None and trial.status in (Trial.PENDING, Trial.PAUSED) and self._may_go_on(trial):
                return trial
        return None

    def debug_string(self) -> str:
        """A line a bracket: its rungs, and how many trials stand where."""
        lines = [f"{type(self.core).__name__}: {len(self.plan.brackets)} brackets, {self.plan.trials} trials"]
        for index, bracket in enumerate(self.plan.brackets):
            states = [self.core.state(trial).value for trial in self._trials if self.core.bracket(trial) == index]
            counts = ", ".join(f"{states.count(name)} {name}" for name in sorted(set(states)))
            lines.append(f"  rungs {bracket.rungs}, sizes {bracket.sizes}: {counts or 'empty'}")
        return "\n".join(lines)

    def _carry_out(self, tune_controller: Any, decided: set[str], current: Trial | None) -> None:
        """Stops the other trials that were cut; those that go on come up in `choose_trial_to_run`."""
        for trial_id in sorted(decided):
            trial = self._trials.get(trial_id)
            if trial is None or trial is current:
                continue
            if self.core.state(trial_id) is State.STOPPED and not trial.is_finished():
                self._num_stopped += 1
                tune_controller.stop_trial(trial)
