"""Searchers and schedulers that misbehave: one clear error each, and what was trained until then stays."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from ray.tune.experiment import Trial
from ray.tune.schedulers import FIFOScheduler
from ray.tune.search import Searcher

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, ParameterRange, decode
from hpo.search.controller import Controller
from hpo.strategies.hyperband import run_all
from hpo.strategies.ray_tune.guard import Guard
from hpo.strategies.ray_tune.scheduler import GuardedScheduler
from hpo.strategies.ray_tune.searcher import GuardedSearcher
from tests.support.refusals import mentions, refuses
from tests.support.simulated import METRIC, rising, simulate
from trainers.errors import SearchError

RANGES: dict[str, ParameterRange] = {
    "eta": ContinuousParameter(0.1, 1),
    "depth": IntegerParameter(1, 8),
    "booster": CategoricalParameter(["gbtree", "dart"]),
}
FINE: dict[str, Any] = {"eta": 0.5, "depth": 3, "booster": "dart"}


class Scripted(Searcher):
    """Suggests what it is told to; after that nothing but fine values."""

    def __init__(self, *script: Any) -> None:
        super().__init__(metric=METRIC, mode="max")
        self.script = list(script)
        self.told: list[tuple[str, Any, bool]] = []
        self.added: list[tuple[dict[str, Any], float]] = []

    def suggest(self, trial_id: str) -> Any:
        given = self.script.pop(0) if self.script else FINE
        if isinstance(given, Exception):
            raise given
        return given

    def on_trial_complete(self, trial_id: str, result: dict[str, Any] | None = None, error: bool = False) -> None:
        self.told.append((trial_id, result and result[METRIC], error))

    def add_evaluated_point(self, parameters: Any, value: float, *rest: Any) -> None:
        self.added.append((parameters, value))


def searched(searcher: Searcher, scheduler: Any = None, jobs: int = 6, **options: Any) -> Controller:
    guard = Guard(1)
    controller, _, _ = simulate(
        GuardedScheduler(scheduler or FIFOScheduler(), milestones=lambda trial, resource: resource + 1, guard=guard),
        searcher=GuardedSearcher(searcher, ranges=RANGES, metric=METRIC, mode="max", guard=guard),
        plan=run_all(jobs, 3),
        parallel=2,
        curve=rising,
        decode=partial(decode, RANGES),
        untuned=False,
        **options,
    )
    return controller


@pytest.mark.parametrize(
    ("suggested", "names"),
    [
        ({**FINE, "eta": 2.0}, ("Scripted", "job-003", "eta", 2.0, 0.1)),
        ({**FINE, "eta": float("nan")}, ("eta", "nan", "finite")),
        ({**FINE, "depth": 2.5}, ("depth", 2.5, "whole")),
        ({**FINE, "booster": "linear"}, ("booster", "linear", "gbtree", "dart")),
        ({**FINE, "eta": None}, ("eta", None, "finite")),
        ({"eta": 0.5}, ("Scripted", "eta", "booster", "depth")),
        ({**FINE, "more": 1}, ("Scripted", "'more'")),
        ({}, ("Scripted", [], "booster", "depth", "eta")),
        ({**FINE, 1: 2}, ("Scripted", "1: 2", "job-003", "dict")),
        ([0.5, 3, "dart"], ("Scripted", [0.5, 3, "dart"], "job-003", "dict")),
        (np.array([0.5, 3.0]), ("Scripted", repr(np.array([0.5, 3.0])), "job-003", "dict")),
        (ZeroDivisionError("by zero"), ("Scripted", "job-003", "ZeroDivisionError: by zero")),
    ],
)
def test_a_wrong_suggestion_ends_the_search_with_what_it_found(suggested: Any, names: tuple[object, ...]) -> None:
    found = searched(Scripted(FINE, FINE, FINE, suggested))
    mentions(found.search_failure, *names)
    assert found.stopped == found.search_failure
    assert len(found.runs) == 3
    assert all(run.trial.is_finished() and run.resource for run in found.runs.values())
    assert found.best() is not None


def test_values_of_numpy_are_values() -> None:
    numpy = {"eta": np.float32(0.5), "depth": np.int64(3), "booster": np.str_("dart")}
    found = searched(Scripted(numpy))
    assert not found.search_failure
    first = found.runs["job-000"].hyperparameters
    assert first == FINE
    assert [type(value) for value in first.values()] == [float, int, str]


def test_a_searcher_that_is_finished_ends_the_search_as_complete() -> None:
    found = searched(Scripted(FINE, FINE, Searcher.FINISHED))
    assert not found.stopped
    assert [run.resource for run in found.runs.values()] == [3, 3]


def test_nothing_for_the_moment_is_asked_again() -> None:
    found = searched(Scripted(FINE, None, None, FINE))
    assert not found.stopped
    assert len(found.runs) == 6


class Raising(FIFOScheduler):
    """Raises in one of its methods, once it was called so often."""

    def __init__(self, method: str, calls: int) -> None:
        super().__init__()
        original: Callable[..., Any] = getattr(self, method)

        def raising(*arguments: Any) -> Any:
            nonlocal calls
            calls -= 1
            if calls < 0:
                raise KeyError("lost")
            return original(*arguments)

        setattr(self, method, raising)


@pytest.mark.parametrize("method", ["on_trial_add", "on_trial_result", "on_trial_complete", "choose_trial_to_run"])
def test_a_scheduler_that_raises_ends_the_search_and_what_it_was_told_of_is_kept(method: str) -> None:
    found = searched(Scripted(), Raising(method, 2))
    mentions(found.search_failure, "scheduler", "Raising", "KeyError", "'lost'")
    assert all(run.trial.is_finished() for run in found.runs.values())
    if method == "on_trial_result":
        assert sum(run.resource for run in found.runs.values()) >= 3


def test_an_answer_that_is_none_is_said() -> None:
    unsure = FIFOScheduler()
    unsure.on_trial_result = lambda *arguments: "PERHAPS"
    mentions(searched(Scripted(), unsure).search_failure, "'PERHAPS'", "CONTINUE", "PAUSE", "STOP")


class Meddling(FIFOScheduler):
    """Does something to the trials that it sees whenever one reports, beside letting that go on."""

    def __init__(self, act: Callable[[Any, Trial, dict[str, Any]], Any], answer: str = "CONTINUE") -> None:
        super().__init__()
        self.act, self.answer = act, answer

    def on_trial_result(self, tune_controller: Any, trial: Trial, result: dict[str, Any]) -> str:
        self.act(tune_controller, trial, result)
        return self.answer


@pytest.mark.parametrize("answer", ["CONTINUE", "PAUSE", "NOOP"])
def test_a_trial_that_its_scheduler_stops_by_itself_ends_there_once(answer: str) -> None:
    scripted = Scripted()
    found = searched(scripted, Meddling(lambda controller, trial, _: controller.stop_trial(trial), answer))
    assert not found.stopped
    assert [run.resource for run in found.runs.values()] == [1] * 6
    assert sorted(name for name, *_ in scripted.told) == list(found.runs)


def test_other_trials_that_train_end_at_their_next_report() -> None:
    def stop_others(controller: Any, trial: Trial, _: Any) -> None:
        for other in controller.get_trials():
            if other is not trial:
                controller.stop_trial(other)

    scripted = Scripted()
    found = searched(scripted, Meddling(stop_others))
    assert not found.stopped
    assert all(run.trial.status == Trial.TERMINATED for run in found.runs.values())
    assert sorted(name for name, *_ in scripted.told) == list(found.runs)


def test_what_has_ended_or_trains_is_not_made_to_wait() -> None:
    def pause_all(controller: Any, trial: Trial, _: Any) -> None:
        for each in controller.get_trials():
            controller.pause_trial(each)

    found = searched(Scripted(), Meddling(pause_all))
    assert not found.stopped
    assert [run.resource for run in found.runs.values()] == [3] * 6


def test_hyperparameters_that_a_scheduler_changes_on_the_way_end_the_search() -> None:
    """The record would say others than those that trained."""
    found = searched(Scripted(), Meddling(lambda _, trial, __: trial.set_config({**trial.config, "eta": 0.9})))
    mentions(found.search_failure, "scheduler", "Meddling", "hyperparameters", "job-000")


def test_a_report_that_searcher_or_scheduler_spoils_is_spoilt_for_nobody_else() -> None:
    def spoil(_: Any, trial: Any, result: dict[str, Any]) -> None:
        result["config"].clear()
        result.clear()

    found = searched(Scripted(), Meddling(spoil))
    assert not found.stopped
    assert all(run.trial.config == FINE and run.value for run in found.runs.values())


@pytest.mark.parametrize("chosen", ["job-000", Trial("x", stub=True)])
def test_what_is_no_trial_of_the_search_cannot_be_chosen(chosen: Any) -> None:
    strange: Any = FIFOScheduler()
    strange.choose_trial_to_run = lambda controller: chosen
    given = getattr(chosen, "trial_id", chosen)
    mentions(searched(Scripted(), strange).search_failure, "scheduler", "FIFOScheduler", given, "trial")


def test_a_searcher_that_raises_when_it_is_told_ends_the_search_at_the_next_question() -> None:
    class Deaf(Scripted):
        def on_trial_complete(self, *told: Any, **more: Any) -> None:
            raise RuntimeError("I do not want to know")

    found = searched(Deaf())
    mentions(found.search_failure, "searcher", "Deaf", "on_trial_complete", "job-000", "RuntimeError")


# ---- trials that it did not suggest


def test_of_a_trial_with_other_values_it_is_told_what_they_were_and_that_its_own_failed() -> None:
    scripted = Scripted()
    searcher = GuardedSearcher(scripted, ranges=RANGES, metric=METRIC, mode="max", guard=Guard(1))
    searcher.begun("t0", {**FINE, "eta": 0.9})
    searcher.on_trial_result("t0", {METRIC: 0.1})
    searcher.on_trial_complete("t0", {METRIC: 0.7})
    assert scripted.told == [("t0", None, True)]
    assert scripted.added == [({**FINE, "eta": 0.9}, 0.7)]
    searcher.begun("t1", FINE)
    searcher.on_trial_complete("t1", {METRIC: 0.7})
    assert scripted.told[1:] == [("t1", 0.7, False)]


def test_a_point_of_a_person_is_one_of_them() -> None:
    scripted = Scripted()
    found = searched(scripted, points=({"eta": 0.9},))
    assert found.runs["job-000"].hyperparameters == {**FINE, "eta": 0.9}
    assert [point for point, _ in scripted.added] == [{**FINE, "eta": 0.9}]


# ---- the guard


def test_global_random_numbers_are_its_own_and_those_of_the_process_go_on() -> None:
    def draw() -> tuple[float, float]:
        return random.random(), np.random.rand()  # noqa: NPY002

    def drawn(guard: Guard) -> list[tuple[float, float]]:
        return [guard.ask("who", "what", draw) for _ in range(3)]

    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    before = [draw() for _ in range(4)]
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002
    first = draw()
    guard = Guard(5)
    own = [guard.ask("who", "what", draw), guard.tell("who", "what", draw, (0.0, 0.0)), guard.ask("who", "what", draw)]
    assert [first, *(draw() for _ in range(3))] == before
    assert own == drawn(Guard(5)) != drawn(Guard(6))


def test_what_is_raised_when_told_is_raised_at_the_next_question() -> None:
    guard = Guard(1)
    assert guard.tell("the scheduler", "a result", lambda: 1 // 0, 7) == 7
    assert guard.tell("the scheduler", "another", lambda: [][1], 8) == 8
    with refuses(SearchError, field=("the scheduler", "a result"), value="ZeroDivisionError"):
        guard.ask("the searcher", "values", lambda: 1)
