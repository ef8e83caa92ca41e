"""Population based training on simulated gangs, whose checkpoints hold what was trained."""

from __future__ import annotations

import inspect
import random
from typing import Any

import numpy as np
import pytest
from ray import tune
from ray.tune.experiment import Trial
from ray.tune.schedulers import PopulationBasedTraining

from tests.support.hpo.forks.population import POPULATION, UNITS, Models, run, told
from tests.support.populations import INTERVAL, pbt
from tests.support.refusals import mentions, refuses
from tests.support.simulated import Draws
from trainers.errors import ConfigurationError, DivergedError
from trainers.gangs.messages import Assignment


def test_forks_are_trials_with_a_parent() -> None:
    controller = run(pbt())
    forks = [run for run in controller.runs.values() if run.origin]
    assert len(forks) == 2 * 3  # A quarter of eight, at units 3, 6 and 9.
    for fork in forks:
        assert fork.origin
        parent, replaced = controller.runs[fork.origin.parent], controller.runs[fork.origin.replaces]
        assert replaced.resource == fork.origin.resource <= parent.resource
        assert fork.resource > fork.origin.resource
        assert fork.hyperparameters != parent.hyperparameters
    assert sum(run.resource == UNITS for run in controller.runs.values()) == POPULATION
    assert controller.trained == POPULATION * UNITS


def test_a_fork_trains_on_from_its_parents_checkpoint() -> None:
    controller = run(pbt())
    fork = next(run for run in controller.runs.values() if run.origin)
    assert fork.origin
    first = next(each for each in controller.gangs.served if each.trial_id == fork.id)
    assert first.start == fork.origin.resource
    assert first.checkpoint is not None
    assert f"/{fork.origin.parent}/" in first.checkpoint
    assert f"/{fork.id}/" in first.save_to


def test_the_searcher_hears_of_its_own_suggestions_alone() -> None:
    searcher = Draws()
    run(pbt(), searcher=searcher)
    assert sorted(name for name, _ in searcher.completed) == [f"job-{number:03d}" for number in range(POPULATION)]


def failing(models: Models, trial_id: str, at: int, error: type[Exception] = ValueError) -> Any:
    def curve(assignment: Assignment, step: int) -> float:
        if assignment.trial_id == trial_id and step == at:
            raise error("it fails")
        return models(assignment, step)

    return curve


@pytest.mark.parametrize("error", [ValueError, DivergedError])
@pytest.mark.parametrize("parallel", [1, 8])
def test_nobody_waits_for_a_member_that_failed_or_diverged(error: type[Exception], parallel: int) -> None:
    slow = {"job-003": 50.0}
    controller = run(
        pbt(),
        parallel=parallel,
        curve=failing(Models(), "job-003", 2, error),
        unit_seconds=lambda assignment: slow.get(assignment.trial_id, 1.0),  # The last to be heard of where all run.
    )
    assert controller.runs["job-003"].trial.is_finished()
    assert sum(run.resource == UNITS for run in controller.runs.values()) == POPULATION - 1
    assert any(run.origin for run in controller.runs.values())


def test_a_member_that_fails_does_not_change_the_answer_with_timing() -> None:
    answers = [told(run(pbt(), parallel=parallel, curve=failing(Models(), "job-003", 5))) for parallel in (1, 2, 8)]
    assert answers[0] == answers[1] == answers[2]


def test_without_synch_members_are_compared_as_they_come() -> None:
    controller = run(pbt(synch=False), parallel=3)
    forks = [run for run in controller.runs.values() if run.origin]
    assert forks
    assert all(fork.origin.resource in range(INTERVAL, UNITS, INTERVAL) for fork in forks if fork.origin)
    assert all(fork.resource > fork.origin.resource for fork in forks if fork.origin)


def test_what_is_missing_of_a_configuration_is_drawn_and_belongs_to_the_trial() -> None:
    mutations = {"eta": tune.uniform(0, 1), "depth": [2, 3, 4]}
    first, second = (run(pbt(hyperparam_mutations=mutations), parallel=parallel) for parallel in (1, 8))
    assert told(first) == told(second)
    assert {run.hyperparameters["depth"] for run in first.runs.values()} <= {2, 3, 4}


def test_the_users_scheduler_stays_as_it_is() -> None:
    scheduler = pbt()
    assert told(run(scheduler)) == told(run(scheduler))


def test_global_generators_stay_as_they_are() -> None:
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    drawn = random.random(), np.random.random()  # noqa: NPY002
    random.seed(3)
    np.random.seed(3)  # noqa: NPY002
    run(pbt())
    assert (random.random(), np.random.random()) == drawn  # noqa: NPY002


@pytest.mark.parametrize("attr", ["time_total_s", "accuracy"])
def test_deciding_by_the_clock_is_refused(attr: str) -> None:
    field = ("PopulationBasedTraining", "time_attr")
    with refuses(ConfigurationError, field=field, value=attr, remedy="training_iteration"):
        run(pbt(time_attr=attr))


def test_changing_what_a_checkpoint_cannot_go_on_with_is_refused() -> None:
    with refuses(ConfigurationError, field="PopulationBasedTraining", value="eta", remedy="checkpoint"):
        run(pbt(), fixed_names=("eta",))


def test_a_searcher_that_waits_ends_the_search() -> None:
    class Waits(Draws):
        def suggest(self, trial_id: str) -> Any:
            return None if self.suggested == 3 else super().suggest(trial_id)

    controller = run(pbt(), searcher=Waits())
    mentions(controller.search_failure, "searcher", "trial", 3, 8)
    assert all(run.trial.is_finished() for run in controller.runs.values())


def test_a_forks_hyperparameters_stay_within_their_ranges() -> None:
    controller = run(pbt(), within_ranges=lambda values: {"eta": min(values["eta"], 0.5)})
    forks = [run for run in controller.runs.values() if run.origin]
    assert all(run.hyperparameters["eta"] <= 0.5 for run in forks)
    assert all(run.trial.config["eta"] <= 0.5 for run in forks)


def test_rays_private_parts_are_there() -> None:
    scheduler, trial = pbt(burn_in_period=4), Trial("warmband", trial_id="a", config={}, stub=True)
    values = {"_time_attr": "training_iteration", "_perturbation_interval": INTERVAL, "_burn_in_period": 4}
    for name, value in {**values, "_synch": True, "_log_config": True}.items():
        assert getattr(scheduler, name) == value
    assert set(scheduler._hyperparam_mutations) == {"eta"}
    assert trial.run_metadata.checkpoint_manager._latest_checkpoint_result is None
    assert "_schedule_trial_save" in inspect.getsource(PopulationBasedTraining)


@pytest.mark.parametrize(
    ("explore", "names"),
    [
        (lambda config: {**config, "booster": "dart"}, ("booster", "dart", "checkpoint")),
        (lambda config: config["missing"], ("PopulationBasedTraining", "on_trial_result")),
    ],
)
@pytest.mark.parametrize("parallel", [1, 4])
def test_an_exploration_that_cannot_be_carried_out_ends_the_search_and_keeps_what_was_trained(
    explore: Any, names: tuple[str, ...], parallel: int
) -> None:
    controller = run(pbt(custom_explore_fn=explore), fixed_names=("booster",), parallel=parallel)
    mentions(controller.search_failure, *names)
    assert [run.resource for run in controller.runs.values()] == [INTERVAL] * POPULATION
    assert all(run.trial.is_finished() for run in controller.runs.values())
