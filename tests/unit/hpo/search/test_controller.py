"""The one loop, on simulated gangs: the same decisions whatever runs at once, fails, or is lost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from operator import itemgetter

import pytest
from ray.tune.schedulers import AsyncHyperBandScheduler, FIFOScheduler
from ray.tune.search.optuna import OptunaSearch
from ray.tune.search.sample import Float

from hpo.cost.ledger import Kind
from hpo.cost.limits import Limits
from hpo.search.observer import STOP_REQUESTED
from hpo.search.simulated_gangs import SimulatedGangs
from hpo.search.trial import UNTUNED, TrialRun, derive_seed, status_of
from hpo.strategies.completion_criteria import FIRST_FAILURES
from hpo.strategies.scheduler import RESOURCE
from tests.support.refusals import mentions
from tests.support.simulated import METRIC, PLAN, WORKERS, Draws, Kept, outcome, rising, simulate, uneven
from trainers.errors import DivergedError
from trainers.gangs.messages import Assignment, Report, Served


@pytest.mark.parametrize("parallel", [2, 4, 8])
def test_the_same_trials_stop_at_the_same_rungs(parallel: int) -> None:
    assert outcome(simulate(parallel=parallel)[0]) == outcome(simulate(parallel=1)[0])


@pytest.mark.parametrize("parallel", [1, 2, 4, 8])
def test_and_again_with_workers_lost_on_the_way(parallel: int) -> None:
    lossy, gangs, _ = simulate(parallel=parallel, losses=frozenset({2, 9, 23}))
    assert outcome(lossy) == outcome(simulate(parallel=1)[0])
    assert len(gangs.served) == len(simulate(parallel=1)[1].served) + 3


def test_free_gangs_take_the_next_bracket_while_a_rung_waits() -> None:
    _, gangs, _ = simulate(parallel=4)
    order = [(int(a.trial_id[4:]), a.start) for a in gangs.served if a.trial_id != UNTUNED]
    first_of_next_bracket = order.index((11, 0))
    last_of_first_bracket = max(place for place, (number, _) in enumerate(order) if number < 11)
    assert first_of_next_bracket < last_of_first_bracket


def test_no_more_run_at_once_than_was_asked_for() -> None:
    _, gangs, _ = simulate(parallel=3)
    assert gangs.gangs == 3


def test_a_trial_that_keeps_losing_its_workers_is_failed() -> None:
    controller, gangs, _ = simulate(parallel=1, losses=frozenset({0, 1, 2}))
    mentions(controller.runs["job-000"].failure, "workers", 3)
    assert sum(a.trial_id == "job-000" for a in gangs.served) == 3
    assert all(run.trial.is_finished() for run in controller.runs.values())


class Spoiling(SimulatedGangs):
    """Finds checkpoints spoilt: that of each trial so many times."""

    times = 1

    def _serve(self, gang: str, assignment: Assignment, seconds: float) -> Served:
        seen = sum(each.trial_id == assignment.trial_id and each.start > 0 for each in self.served)
        if assignment.start and seen <= self.times:
            said = f"checkpoint {assignment.checkpoint!r} is cut short"
            return Served(gang=gang, trial_id=assignment.trial_id, error=said, traceback="there", spoilt=True)
        return super()._serve(gang, assignment, seconds)


@pytest.mark.parametrize("parallel", [1, 4])
def test_a_trial_whose_checkpoint_is_spoilt_trains_its_rungs_again_into_other_files(
    parallel: int, caplog: pytest.LogCaptureFixture
) -> None:
    whole, undisturbed, _ = simulate(parallel=1)
    spoilt, gangs, record = simulate(parallel=parallel, gangs=Spoiling)
    assert outcome(spoilt) == outcome(whole)
    assert spoilt.trained == whole.trained
    again = {run.id for run in spoilt.runs.values() if run.attempts}
    assert again == {assignment.trial_id for assignment in undisturbed.served if assignment.start} - {UNTUNED}
    said = [line for line in caplog.messages if f"checkpoint '/nowhere/{min(again)}/" in line]
    assert said
    mentions(said[0].partition("checkpoint")[0], "trial", min(again))
    for trial in again:
        served = [assignment for assignment in gangs.served if assignment.trial_id == trial]
        [second] = [at for at, assignment in enumerate(served) if at and not assignment.start]
        assert not {each.save_to for each in served[:second]} & {each.save_to for each in served[second:]}
        assert all(each.checkpoint == before.save_to for before, each in pairwise(served[second:]))
    assert all(sorted(set(steps)) == [*range(1, len(set(steps)) + 1)] for steps in record.steps.values())


def test_a_trial_whose_checkpoints_are_spoilt_again_and_again_is_failed_with_what_is_wrong_with_them() -> None:
    controller, _, _ = simulate(parallel=1, gangs=type("Bad", (Spoiling,), {"times": 100}))
    failed = [run for run in controller.runs.values() if run.failure]
    assert failed
    for run in failed:
        assert run.failure.startswith(f"checkpoint '/nowhere/{run.id}/000")
        assert (run.attempts, run.traceback) == (3, "there")
        assert run.resource > 0, "it stands at the rung that it had reached"
    assert all(run.trial.is_finished() for run in controller.runs.values())


def test_a_failed_trial_is_told_to_the_searcher_and_the_job_goes_on() -> None:
    def curve(assignment: Assignment, step: int) -> float:
        if assignment.trial_id == "job-003":
            raise ValueError("max_depth must be positive")
        return rising(assignment, step)

    searcher = Draws()
    controller, _, _ = simulate(curve=curve, searcher=searcher)
    assert controller.runs["job-003"].failure == "max_depth must be positive"
    assert ("job-003", True) in searcher.completed
    assert sorted(name for name, _ in searcher.completed) == sorted(controller.runs)


def test_assignments_resume_from_where_the_trial_stopped() -> None:
    _, gangs, _ = simulate(parallel=2, losses=frozenset({5}))
    reached: dict[str, tuple[int, str | None]] = {}
    lost = gangs.served[5]
    for assignment in gangs.served:
        start, checkpoint = reached.get(assignment.trial_id, (0, None))
        assert (assignment.start, assignment.checkpoint) == (start, checkpoint)
        assert assignment.seed == derive_seed(
            1, assignment.trial_id if assignment.trial_id == UNTUNED else int(assignment.trial_id[4:])
        )
        if assignment is not lost:
            reached[assignment.trial_id] = (assignment.stop, assignment.save_to)


def test_the_ledger_adds_up_to_the_time_that_gangs_were_held() -> None:
    controller, gangs, record = simulate(parallel=4, losses=frozenset({7}), static={"eta": 0.5})
    held = gangs.now * 4 * WORKERS
    assert controller.ledger.total == pytest.approx(held)
    assert sum(entry.worker_seconds for entry in record.entries) == pytest.approx(held)
    assert controller.ledger.totals[Kind.STARTING] == pytest.approx((4 + 1) * 8.0 * 3)
    assert controller.ledger.totals[Kind.TRAINING] == pytest.approx(
        3 * (gangs.busy_seconds - _half_of(gangs.served[7]))
    )


def _half_of(assignment: Assignment) -> float:
    return uneven(assignment) * (assignment.stop - assignment.start) / 2


def test_best_value_compares_by_the_best_so_far() -> None:
    def falling(assignment: Assignment, step: int) -> float:
        return rising(assignment, step) if step < 20 else -1.0 if assignment.hyperparameters["eta"] > 0.5 else 0.0

    last, _, _ = simulate(curve=falling, untuned=False)
    best, _, _ = simulate(curve=falling, untuned=False, best_value=True)
    assert best.objective(best.best()) > 0.5
    assert last.objective(last.best()) < best.objective(best.best())


class StopsSoon(Kept):
    """A record in which somebody asks for a stop after five trials have reported."""

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        super().reports(run, reports)
        self.stop_requested = len(self.steps) >= 5


def test_a_requested_stop_ends_the_run() -> None:
    controller, _, _ = simulate(parallel=2, record=StopsSoon())
    assert controller.stopped == STOP_REQUESTED
    assert 5 <= len(controller.runs) < 30
    assert all(run.trial.is_finished() for run in controller.runs.values())


def test_a_deadline_ends_the_run() -> None:
    controller, gangs, _ = simulate(parallel=2, limits=Limits(max_seconds=60.0))
    mentions(controller.stopped, "max_runtime_in_seconds", 60)
    assert gangs.now < 100
    assert controller.best() is not None


def test_a_searcher_that_runs_dry_ends_the_search() -> None:
    controller, _, _ = simulate(searcher=Draws(dry_after=7))
    assert len(controller.runs) == 7
    assert all(run.trial.is_finished() for run in controller.runs.values())


def test_a_stock_scheduler_and_a_stock_searcher_run_unchanged() -> None:
    scheduler = AsyncHyperBandScheduler(time_attr=RESOURCE, metric=METRIC, mode="max", max_t=30, reduction_factor=3)
    searcher = OptunaSearch({"eta": Float(0, 1).uniform()}, metric=METRIC, mode="max", seed=3)
    controller, _, _ = simulate(scheduler, searcher=searcher, untuned=False)
    assert len(controller.runs) == 30
    assert all(run.trial.is_finished() for run in controller.runs.values())
    assert controller.trained < 0.6 * 900
    assert controller.best().hyperparameters["eta"] > 0.8


def test_length_names_bound_a_trial() -> None:
    class Lengths(Draws):
        def suggest(self, trial_id: str):  # type: ignore[no-untyped-def]
            return {"eta": 0.5, "num_round": 5 + int(trial_id[4:])}

    controller, _, _ = simulate(FIFOScheduler(), searcher=Lengths(), length=itemgetter("num_round"), untuned=False)
    assert [run.resource for run in controller.runs.values()] == [min(30, 5 + number) for number in range(30)]


def test_ties_go_to_the_trial_that_used_less() -> None:
    """Every trial reaches the same value, by its best step or its last: the one that stopped early has used less."""
    controller, _, _ = simulate(curve=lambda assignment, step: 0.5)
    best = controller.best()
    assert best is not None
    assert best.resource == min(run.resource for run in controller.runs.values())
    by_best, _, _ = simulate(curve=lambda assignment, step: min(step, 3) / 10, best_value=True)
    chosen = by_best.best()
    assert chosen is not None
    assert (chosen.best_value, chosen.best_resource) == (0.3, 3)


@pytest.mark.parametrize("parallel", [1, 2, 10])
def test_a_job_whose_first_trials_all_fail_ends_early(parallel: int) -> None:
    def curve(assignment: Assignment, step: int) -> float:
        if assignment.trial_id != UNTUNED:
            raise ValueError("no such objective")
        return 0.5

    controller, gangs, _ = simulate(curve=curve, parallel=parallel)
    slowest = max(map(uneven, gangs.served))
    assert gangs.now <= 8.0 + FIRST_FAILURES * slowest / min(parallel, FIRST_FAILURES) + slowest
    assert controller.trials.hopeless
    mentions(controller.stopped, FIRST_FAILURES, "trials", "failed")
    assert parallel > 2 or FIRST_FAILURES <= len(controller.runs) <= FIRST_FAILURES + 2
    assert controller.best() is None


def test_a_job_that_has_trained_something_goes_on_past_failures() -> None:
    def curve(assignment: Assignment, step: int) -> float:
        if assignment.trial_id not in ("job-000", UNTUNED):
            raise ValueError("no such objective")
        return 0.5

    controller, _, _ = simulate(curve=curve, parallel=1)
    assert not controller.trials.hopeless
    assert len(controller.runs) == PLAN.trials


DIVERGES = {"job-000": 1, "job-004": 3, "job-012": 7, "job-024": 25}
"""Trials, and the unit in which each diverges."""


@pytest.mark.parametrize("says", ["raises", "reports nan", "reports nan once"])
@pytest.mark.parametrize("best_value", [False, True])
def test_a_trial_that_diverges_ends_at_once_and_ranks_last(says: str, best_value: bool) -> None:
    def curve(assignment: Assignment, step: int) -> float:
        at = DIVERGES.get(assignment.trial_id, math.inf)
        if step < at or (step > at and says == "reports nan once"):
            return 2.0 if at < math.inf else rising(assignment, step)  # The best of all until then.
        if says == "raises":
            raise DivergedError("the loss is nan")
        return math.nan

    searcher = Draws()
    controller, gangs, record = simulate(curve=curve, searcher=searcher, best_value=best_value, parallel=3)
    for name, at in DIVERGES.items():
        run = controller.runs[name]
        assert status_of(run) == "Diverged"
        mentions(run.diverged, *(["the loss is nan"] if says == "raises" else [METRIC, "nan", at]))
        assert not run.failure
        assert math.isnan(controller.objective(run))
        last = [a for a in gangs.served if a.trial_id == name][-1]
        assert last.start < at <= last.stop  # And nothing was handed out after that.
        assert run.resource == (at - 1 if says == "raises" else last.stop)
        assert record.steps.get(name, []) == list(range(1, run.resource + 1))
        assert (name, True) in searcher.completed
    best = controller.best()
    assert best is not None
    assert best.id not in DIVERGES
    assert not controller.trials.hopeless
    assert not controller.stopped
    assert all(run.trial.is_finished() for run in controller.runs.values())
    assert controller.ledger.by_trial["job-012"] > 0


def test_a_job_whose_first_trials_diverge_goes_on() -> None:
    def curve(assignment: Assignment, step: int) -> float:
        if assignment.trial_id == UNTUNED:
            return 0.5
        if int(assignment.trial_id[4:]) < 8:
            raise DivergedError("the loss is nan")
        if int(assignment.trial_id[4:]) < 16:
            raise ValueError("no such objective")
        return rising(assignment, step)

    controller, _, _ = simulate(curve=curve, parallel=1)
    assert not controller.trials.hopeless
    assert len(controller.runs) == PLAN.trials
    assert controller.best() is not None


def test_a_report_without_the_objective_fails_its_trial_and_names_what_was_reported() -> None:
    controller, gangs, record = simulate(reported="validation:loss", parallel=1, probes=(1, 5))
    mentions(controller.runs["job-000"].failure, METRIC, "validation:loss")
    assert record.steps["job-000"] == [1]
    assert controller.trials.hopeless
    assert len(gangs.served) == 2 + FIRST_FAILURES


def test_details_of_a_trial_are_those_of_its_assignments_together() -> None:
    controller, gangs, _ = simulate(losses=frozenset({3}), details={"units": 1, "seen": {"all": 2}, "mode": "async"})
    lost = gangs.served[3]
    for run in (*controller.runs.values(), controller.untuned):
        assert run is not None
        served = sum(a.trial_id == run.id and a is not lost for a in gangs.served)
        assert run.details == {"units": served, "seen": {"all": 2 * served}, "mode": "async"}


def test_the_record_is_told_of_rungs_and_of_every_round() -> None:
    controller, gangs, record = simulate()
    assert sum(len(cut.stopped) for cut in record.cuts) == sum(
        run.resource < PLAN.max_resource for run in controller.runs.values()
    )
    assert record.rounds >= len(gangs.served)
