"""A search whose decisions follow from the order of results decides again as it did, wherever it was broken off."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings, strategies as st
from ray.tune.experiment import Trial
from ray.tune.schedulers import AsyncHyperBandScheduler, TrialScheduler

from hpo.search.recall import Turn, turns_in
from hpo.strategies.asha.asha_scheduler import AshaScheduler
from hpo.strategies.asha.promotions import grown, lay_out_asynchronous
from hpo.strategies.hyperband import Plan, lay_out, run_all
from hpo.strategies.scheduler import RESOURCE
from tests.support.broken_off import Service, Spoiling, answer, check_bills, ends_as
from tests.support.hpo.jobs.turns import IN_ORDER, searched
from tests.support.properties import examples
from tests.support.simulated import METRIC


def turns(service: Service) -> list[Turn]:
    """The turns that the record has."""
    return sorted(turn for row in service.rows.trials.values() for turn in turns_in(row.trial_id, row.turns))


@settings(max_examples=examples(40), deadline=None)
@given(
    st.integers(1, 6),
    st.lists(
        st.tuples(st.booleans(), st.integers(1, 40), st.integers(0, 12), st.none() | st.integers(0, 30)),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
)
def test_broken_off_anywhere_it_decides_again_as_it_did(
    parallel: int, ends: list[tuple[bool, int, int, int | None]], exact: bool
) -> None:
    """Each driver's decisions begin with those of the one before, as far as the record has them."""
    service, schedulers = searched(parallel, exact_from=lambda hyperparameters: exact)
    for killed, after, unwritten, lost in ends:
        losses = frozenset() if lost is None else frozenset({lost})
        ended = service.drive(losses=losses, **{"dies_at" if killed else "stop_at": after})
        if ended is None:
            service.rows.lose(unwritten)
        known, log = turns(service), schedulers[-1].log
        assert [turn.number for turn in known] == list(range(1, len(known) + 1))
        suggested = {name: row.hyperparameters for name, row in service.rows.trials.items()}
        again = service.drive(dies_at=0)  # It decides again, and dies before its first gang is up.
        assert again is None or not again.stopped
        told = [entry for entry in schedulers[-1].log if isinstance(entry, tuple)]
        assert told == [entry for entry in log if isinstance(entry, tuple)][: len(told)]
        assert len(told) == sum(turn.kind == "told" for turn in known)
        assert schedulers[-1].log == log[: len(schedulers[-1].log)]
        assert {name: service.rows.trials[name].hyperparameters for name in suggested} == suggested
    controller = service.drive()
    assert controller is not None
    assert not controller.stopped
    assert all(run.trial.is_finished() for run in controller.runs.values())


@settings(max_examples=examples(40), deadline=None)
@given(
    st.sampled_from([lay_out(9, 1, 9), run_all(7, 12)]),
    st.integers(1, 5),
    st.integers(0, 1000),
    st.lists(st.tuples(st.booleans(), st.integers(1, 60), st.none() | st.integers(0, 20)), min_size=1, max_size=4),
    st.booleans(),
)
def test_hyperband_that_is_told_in_order_is_hyperband(
    plan: Plan, parallel: int, seed: int, ends: list[tuple[bool, int, int | None]], exact: bool
) -> None:
    """Its trials are halted between rungs, fail, diverge, lose gangs, and train their rungs again."""
    whole = Service(plan=plan, parallel=parallel)
    gangs = type("SpoilingOnce", (Spoiling,), {"spoilt": set(), "seed": seed})
    service = Service(
        plan=plan,
        parallel=parallel,
        gangs=gangs,
        options={"in_order": True, "exact_from": lambda hyperparameters: exact},
    )
    for number, (killed, after, lost) in enumerate(ends):
        losses = frozenset() if lost is None or number else frozenset({lost})  # Nor may a trial lose three gangs.
        service.drive(losses=losses, **{"dies_at" if killed else "stop_at": after})
    ends_as(service, answer(whole, whole.drive()))


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 60)), min_size=1, max_size=3))
def test_one_trial_at_a_time_under_asha_of_rays_ends_alike(ends: list[tuple[bool, int]]) -> None:
    def asha(plan: Plan) -> TrialScheduler:
        return AsyncHyperBandScheduler(time_attr=RESOURCE, metric=METRIC, mode="max", max_t=9, reduction_factor=3)

    whole = Service(plan=run_all(8, 9), parallel=1, scheduler=asha, options=IN_ORDER)
    expected = answer(whole, whole.drive())
    service = Service(plan=run_all(8, 9), parallel=1, scheduler=asha, options=IN_ORDER)
    for killed, after in ends:
        service.drive(**{"dies_at" if killed else "stop_at": after})
    ends_as(service, expected)


class Logged(AshaScheduler):
    """ASHA that remembers what it promoted and what it was told of rungs."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan, metric=METRIC, mode="max")
        self.log: list[tuple[Any, ...]] = []

    def on_trial_add(self, tune_controller: Any, trial: Trial) -> None:
        super().on_trial_add(tune_controller, trial)
        self.log.append(("begun", trial.trial_id))

    def choose_trial_to_run(self, tune_controller: Any) -> Trial | None:
        before = set(self.core.runnable())
        trial = super().choose_trial_to_run(tune_controller)
        if trial is not None and trial.trial_id not in before:
            self.log.append(("promoted", trial.trial_id))
        return trial

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        if trial.trial_id in self.core.runnable() and result[RESOURCE] == self.milestone(trial):
            self.log.append(("came", trial.trial_id, result[RESOURCE], result[METRIC]))
        return super().on_trial_result(tune_controller, trial, result)

    def on_trial_error(self, tune_controller: Any, trial: Trial) -> None:
        self.log.append(("lost", trial.trial_id))
        super().on_trial_error(tune_controller, trial)


ASHA_PLAN = lay_out_asynchronous(12, 1, 9)


@settings(max_examples=examples(80), deadline=None)
@given(
    st.integers(1, 6),
    st.integers(0, 1000),
    st.lists(
        st.tuples(st.booleans(), st.integers(1, 40), st.integers(0, 12), st.none() | st.integers(0, 30)),
        min_size=1,
        max_size=4,
    ),
    st.booleans(),
    st.sampled_from([0, 1, 10]),
)
def test_asha_broken_off_anywhere_promotes_again_what_it_had_promoted(
    parallel: int, seed: int, ends: list[tuple[bool, int, int, int | None]], exact: bool, more: int
) -> None:
    """Halted between rungs, with lost gangs, spoilt checkpoints, rows that were not written, and a larger max_jobs."""
    schedulers: list[Logged] = []

    def scheduler(plan: Plan) -> TrialScheduler:
        schedulers.append(Logged(plan))
        return schedulers[-1]

    gangs = type("SpoilingOnce", (Spoiling,), {"spoilt": set(), "seed": seed})
    options = {**IN_ORDER, "exact_from": lambda hyperparameters: exact}
    service = Service(plan=ASHA_PLAN, parallel=parallel, scheduler=scheduler, gangs=gangs, options=options)
    for killed, after, unwritten, lost in ends:
        losses = frozenset() if lost is None else frozenset({lost})
        if service.drive(losses=losses, **{"dies_at" if killed else "stop_at": after}) is None:
            service.rows.lose(unwritten)
        log = schedulers[-1].log
        service.drive(dies_at=0)
        again = schedulers[-1].log
        assert again == log[: len(again)]
        came = {(entry[1], entry[2]) for entry in again if entry[0] == "came"}
        for name, row in service.rows.trials.items():
            rung = max((rung for rung in ASHA_PLAN.brackets[0].rungs if rung <= row.resource), default=0)
            assert not rung or (name, rung) in came
    before = schedulers[-1].log
    service.plan = grown(ASHA_PLAN, 12 + more) if more else ASHA_PLAN
    controller = service.drive()
    assert controller is not None
    assert len(controller.runs) == 12 + more
    assert schedulers[-1].log[: len(before)] == before
    assert all(run.trial.is_finished() for run in controller.runs.values())
    assert controller.trained <= service.plan.resource
    check_bills(service, controller)
