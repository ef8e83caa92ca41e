"""Schedulers and searchers whose decisions depend on the order of turns."""

from __future__ import annotations

import hashlib
import random
from typing import Any

from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher

from hpo.strategies.hyperband import Plan, run_all
from hpo.strategies.scheduler import RESOURCE
from tests.support.broken_off import Service
from tests.support.simulated import METRIC, drawn

PLAN = run_all(8, 5)
IN_ORDER = {"in_order": True, "untuned": False}


class Digests(FIFOScheduler):
    """Decides by a digest of all that it was told and chose before, in that order, so that any difference shows."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[Any] = []
        self.under_way: set[str] = set()

    @property
    def digest(self) -> str:
        return hashlib.blake2b(repr(self.log).encode(), digest_size=8).hexdigest()

    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:
        self._choose(trial)

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        dice = drawn(self.digest)
        self._told(trial, (result[RESOURCE], result[METRIC]))
        if dice < 0.1 and (others := [each for each in self._waiting(tune_controller) if each is not trial]):
            tune_controller.stop_trial(random.Random(dice).choice(others))
        return str(TrialScheduler.STOP if dice < 0.2 else TrialScheduler.PAUSE)

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        self._told(trial, None)

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        lost = [each for each in tune_controller.get_live_trials() if each.trial_id in self.under_way]
        for trial in sorted(lost, key=lambda each: each.trial_id):
            if trial.status != Trial.RUNNING:  # It lost its gang, or the driver that had chosen it.
                return trial
        waiting = self._waiting(tune_controller)
        dice = random.Random(self.digest)
        if not waiting or (tune_controller.demand.to_come and dice.random() < 0.5):
            return None
        return self._choose(dice.choice(waiting))

    def _waiting(self, tune_controller: Any) -> list[Trial]:
        live = tune_controller.get_live_trials()
        return sorted((each for each in live if each.trial_id not in self.under_way), key=lambda each: each.trial_id)

    def _choose(self, trial: Trial) -> Trial:
        self.under_way.add(trial.trial_id)
        self.log.append(trial.trial_id)
        return trial

    def _told(self, trial: Trial, what: Any) -> None:
        self.under_way.discard(trial.trial_id)
        self.log.append((trial.trial_id, what))


class Ordered(Searcher):
    """Suggests a digest of all that it was told before, in that order."""

    def __init__(self) -> None:
        super().__init__(metric=METRIC, mode="max")
        self.log: list[Any] = []

    def suggest(self, trial_id: str) -> dict[str, Any]:
        return {"eta": drawn(repr(self.log))}

    def on_trial_result(self, trial_id: str, result: dict[str, Any]) -> None:
        self.log.append((trial_id, result[RESOURCE], result[METRIC]))

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        self.log.append((trial_id, error))


def searched(parallel: int, **options: Any) -> tuple[Service, list[Digests]]:
    """A service whose schedulers, one a driver, are kept."""
    schedulers: list[Digests] = []

    def scheduler(plan: Plan) -> TrialScheduler:
        schedulers.append(Digests())
        return schedulers[-1]

    service = Service(
        plan=PLAN,
        parallel=parallel,
        scheduler=scheduler,
        searcher=Ordered,
        options={**IN_ORDER, **options},
    )
    return service, schedulers
