"""Population based training on simulated gangs, whose checkpoints hold what was trained."""

from __future__ import annotations

from typing import Any

import pytest
from ray.tune.schedulers.pb2 import PB2

from hpo.search.simulated_gangs import SimulatedGangs
from hpo.strategies.hyperband import run_all
from tests.support.hpo.forks.population import POPULATION, UNITS, Models, run, told
from tests.support.populations import INTERVAL, pbt
from trainers.gangs.messages import Assignment, Served


def pb2(**options: Any) -> PB2:
    return PB2(
        time_attr="training_iteration",
        perturbation_interval=INTERVAL,
        hyperparam_bounds={"eta": [0.0, 1.0]},
        **{"synch": True, **options},
    )


def test_the_answer_is_the_same_for_any_number_of_gangs_and_with_losses() -> None:
    alone = told(run(pbt(), parallel=1))
    for parallel in (2, 3, 8):
        assert told(run(pbt(), parallel=parallel)) == alone
    assert told(run(pbt(), parallel=3, losses=frozenset({2, 9, 17}))) == alone
    assert told(run(pbt(), parallel=3, seed=2)) != alone


@pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning", "ignore::sklearn.exceptions.ConvergenceWarning")
def test_pb2_is_the_same_for_any_number_of_gangs() -> None:
    few = run_all(4, UNITS)
    alone = run(pb2(), plan=few, parallel=1)
    assert sum(run.origin is not None for run in alone.runs.values()) == 3
    assert told(run(pb2(), plan=few, parallel=3)) == told(alone)


def test_a_fork_whose_checkpoint_is_gone_trains_what_its_ancestors_did() -> None:
    models = Models()
    undisturbed = told(run(pbt(), curve=models))

    class Spoilt(SimulatedGangs):
        """Refuses the first assignment that goes on from a trial's checkpoint, as if that were gone."""

        def _serve(self, gang: str, assignment: Assignment, seconds: float) -> Served:
            if assignment.trial_id in self.spoil and assignment.checkpoint:
                self.spoil.discard(assignment.trial_id)
                return Served(gang=gang, trial_id=assignment.trial_id, error="it is gone", spoilt=True)
            return super()._serve(gang, assignment, seconds)

    forks = [name for name, (_, origin, *_) in undisturbed.items() if origin]
    for name in (forks[0], forks[-1]):
        Spoilt.spoil = {name}
        controller = run(pbt(), gangs=Spoilt)
        assert told(controller) == undisturbed
        again = [each for each in controller.gangs.served if each.trial_id == name and each.start == 0]
        assert again
        assert again[0].hyperparameters != controller.runs[name].trial.config
        assert controller.trained == POPULATION * UNITS
