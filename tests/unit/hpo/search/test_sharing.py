"""Trials that have their beginning in common, on simulated gangs: the answer is that of each trained for itself."""

from __future__ import annotations

import pytest
from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler

from hpo.forks.effects import Effects
from hpo.ranges import CategoricalParameter
from hpo.search import trials
from hpo.search.trial import TrialRun
from hpo.strategies.completion_criteria import TuningJobCompletionCriteriaConfig
from hpo.strategies.hyperband import Plan, run_all
from tests.support.hpo.search.sharing import BROKEN, service
from tests.support.simulated_schedules import (
    Apart,
    Told,
    run,
    units,
)


@pytest.mark.parametrize("parallel", [1, 2, 3])
def test_a_search_over_schedules_trains_a_common_beginning_once(parallel: int) -> None:
    """Decay at 10, 20 or 30 of 40 units: 10, and 30 more; 10 more for the other two, and 20 more; and 20 more."""
    ranges = {"decay_at": CategoricalParameter([10, 20, 30])}
    effects = Effects.of({"decay_at": "decay_at"}, ranges, {})
    order = iter([10, 20, 30])
    controller, gangs, _ = run(
        run_all(3, 40), effects=effects, parallel=parallel, decode=lambda suggested: {"decay_at": next(order)}
    )
    assert units(gangs) == 10 + 30 + 10 + 20 + 20
    assert controller.trained == 3 * 40
    assert controller.trials.sharing.units == 30
    first, second, third = controller.runs.values()
    assert (first.common, first.shared) == (None, 0)
    assert second.common is not None
    assert (second.common.parent, second.common.resource, second.shared) == (first.id, 10, 10)
    assert third.common is not None
    assert (third.common.parent, third.common.resource, third.shared) == (second.id, 20, 20)
    begun = {(each.start, each.stop) for each in gangs.served}
    assert begun == {(0, 10), (10, 40), (10, 20), (20, 40), (20, 30), (30, 40)}


@pytest.mark.parametrize("plan", BROKEN)
@pytest.mark.parametrize("target", [0.6, 0.8, 0.95])
def test_a_job_is_complete_at_the_same_trial(plan: Plan, target: float) -> None:
    criteria = TuningJobCompletionCriteriaConfig(target_objective_metric_value=target)
    found = []
    for parallel in (1, 3):
        search = service(plan, parallel, exact=False, completion=criteria)
        controller = search.drive()
        assert controller is not None
        found.append((controller.trials.verdict, controller.best() and controller.best().id))  # type: ignore[union-attr]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trials, "Sharing", Apart)
        controller = service(plan, 1, exact=False, completion=criteria).drive()
        assert controller is not None
        found.append((controller.trials.verdict, controller.best() and controller.best().id))  # type: ignore[union-attr]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("parallel", [1, 3])
def test_where_decisions_follow_from_the_order_of_results_one_that_waits_has_a_place(parallel: int) -> None:
    """So no trial begins that would not have begun so early if each trained for itself."""
    begun: list[int] = []

    class Watched(Told):
        def trial(self, run: TrialRun) -> None:
            if run.trial.status == Trial.RUNNING:
                running.add(run.id)
            else:
                running.discard(run.id)
            begun.append(len(running))

    running: set[str] = set()
    controller, _, _ = run(run_all(9, 6), parallel=parallel, scheduler=FIFOScheduler(), in_order=True, record=Watched())
    assert max(begun) <= parallel
    assert controller.trials.sharing.units > 0
