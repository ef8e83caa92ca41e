"""A search whose decisions follow from the order of results decides again as it did, wherever it was broken off."""

from __future__ import annotations

import hashlib
import logging
import random
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from ray.tune.experiment import Trial
from ray.tune.schedulers import AsyncHyperBandScheduler, FIFOScheduler, TrialScheduler
from ray.tune.search import Searcher

from hpo.search.recall import Turn, turns_in
from hpo.strategies.asha.asha_scheduler import AshaScheduler
from hpo.strategies.asha.promotions import grown, lay_out_asynchronous
from hpo.strategies.hyperband import Plan, lay_out, run_all
from hpo.strategies.scheduler import RESOURCE
from tests.support.broken_off import Service, Spoiling, answer, check_bills, ends_as
from tests.support.refusals import mentions, missing_names
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


def turns(service: Service) -> list[Turn]:
    """The turns that the record has."""
    return sorted(turn for row in service.rows.trials.values() for turn in turns_in(row.trial_id, row.turns))


@settings(max_examples=40, deadline=None)
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


@settings(max_examples=40, deadline=None)
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


@settings(max_examples=40, deadline=None)
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


@settings(max_examples=80, deadline=None)
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


def test_a_record_without_turns_is_told_in_any_order() -> None:
    service = Service(plan=lay_out(9, 1, 9), parallel=3)
    expected = answer(service, service.drive())
    again = Service(plan=lay_out(9, 1, 9), parallel=3)
    again.drive(dies_at=12)
    again.options = {"in_order": True}
    ends_as(again, expected)


def test_a_strategy_that_does_not_decide_as_it_did_says_so_and_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    service, _ = searched(parallel=2)
    service.drive(dies_at=20)
    known = {name: row for name, row in service.rows.trials.items() if row.resource}
    service.scheduler = partial(Unlike, service)
    with caplog.at_level(logging.WARNING):
        controller = service.drive()
    (warned,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    mentions(warned, "strategy")
    assert any(not missing_names(warned, name) for name in service.rows.trials)
    assert controller is not None
    assert {name: controller.runs[name].hyperparameters for name in known} == {
        name: row.hyperparameters for name, row in known.items()
    }
    trained = {(each.trial_id, step) for each in service.served for step in range(each.start + 1, each.stop + 1)}
    assert trained == {*service.rows.reports}


class Unlike(Digests):
    """Decides otherwise from some moment on."""

    def __init__(self, service: Service, plan: Plan) -> None:
        super().__init__()
        self.log.append("unlike")
