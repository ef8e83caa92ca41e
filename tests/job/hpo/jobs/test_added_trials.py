"""Trials that a person adds to a job that runs: whatever dies, one trial takes each, and has it in every life."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from hpo import HyperparameterTuner
from hpo.record.store import Store, TrialRow
from hpo.strategies.hyperband import lay_out, run_all
from tests.support.drivers import Disturbance
from tests.support.driving import CHANNELS, Counting, tuner
from tests.support.fixtures.hpo_cli import store  # noqa: F401  # A fixture.
from tests.support.job_life import LOST, World
from tests.support.job_search import Aim
from tests.support.listed import hpo, job
from tests.support.properties import examples
from tests.support.refusals import mentions, refuses_each
from trainers import ConfigurationError

MOMENTS = st.tuples(st.integers(0, 12), st.integers(0, 40))
VALUES = (0.25, 0.75)


def add(world: World, eta: float) -> None:
    """Another process adds a trial, which the driver there is hears of."""
    with Store(world.url) as record:
        record.add_trial("job", {"eta": eta}, lambda *_: None)
    if world.driver and world.driver.writer:
        world.driver.turn()


def to_the_end(world: World, *acts: Mapping[tuple[int, int], Any]) -> None:
    """Drives a job with one disturbed driver after the other, and then undisturbed."""
    for each in acts:
        world.drive(Disturbance(acts=dict(each), written_every=1))
        world.now += LOST
    world.drive(Disturbance())
    assert world.check().status == "Completed"


def took(world: World) -> dict[float, list[TrialRow]]:
    """The trials that took each of the values that were added."""
    with Store(world.url) as record:
        added = {row.id: row.hyperparameters["eta"] for row in record.additions("job")}
        trials = record.trials("job")
    return {eta: [trial for trial in trials if trial.given == name] for name, eta in added.items()}


@pytest.mark.parametrize("learns", [False, True])
def test_a_job_that_is_killed_anywhere_has_the_same_trials_again(learns: bool) -> None:
    """They wait from its start on, so that it is the same trials that take them in every life."""
    answers = []
    aim = Aim(plan=lay_out(9, 1, 9), learns=learns)
    for events in (None, 0, 1, 3, 5, 8):
        with closing(World(aim=aim)) as world:
            for eta in VALUES:
                add(world, eta)
                world.now += 1.0
            to_the_end(world, {} if events is None else {(events, 2): partial(world.kill, heard=events % 2 == 0)})
            assert {eta: [trial.number for trial in trials] for eta, trials in took(world).items()} == {
                0.25: [0],
                0.75: [1],
            }
            answers.append(world.answer())
    assert all(answer == answers[0] for answer in answers[1:])
    assert [trial[4] for trial in answers[0]["trials"][:2]] == [{"eta": eta} for eta in VALUES]


@settings(max_examples=examples(12), deadline=None)
@given(st.lists(MOMENTS, min_size=2, max_size=2), st.lists(MOMENTS, max_size=2), st.booleans(), st.integers(0, 1))
def test_whenever_it_is_added_and_the_driver_dies_one_trial_takes_it(
    added: list[tuple[int, int]], deaths: list[tuple[int, int]], heard: bool, plan: int
) -> None:
    with closing(World(aim=Aim(plan=(lay_out(9, 1, 9), run_all(8, 4))[plan]))) as world:
        to_the_end(world)
        without = {trial.number: trial.hyperparameters for trial in world.rows()[1]}
    with closing(World(aim=Aim(plan=(lay_out(9, 1, 9), run_all(8, 4))[plan]))) as world:
        first: dict[tuple[int, int], Any] = {}
        for moment, eta in zip(added, VALUES, strict=True):
            first[moment] = partial(add, world, eta)
        for moment in deaths[:1]:
            first.setdefault(moment, partial(world.kill, heard=heard))
        to_the_end(world, first, *({moment: partial(world.kill, heard=heard)} for moment in deaths[1:]))
        rows = world.rows()[1]
        for eta, trials in took(world).items():
            assert len(trials) <= 1
            assert all(trial.hyperparameters == {"eta": eta} for trial in trials)
        others = {trial.number: trial.hyperparameters for trial in rows if not trial.given}
        assert others == {number: without[number] for number in others}
        assert len(rows) == len(without)


def test_one_that_no_trial_took_is_taken_when_the_job_has_more() -> None:
    with closing(World(aim=Aim(plan=run_all(3, 2)))) as world:
        to_the_end(world)
        add(world, 0.25)
        world.raise_limit("max_jobs", 5)
        to_the_end(world)
        assert [trial.number for trial in took(world)[0.25]] == [3]


ADD = ("trials", "add", "job", "--set")


class Adding(Counting):
    """Adds a trial at the job's first report, and then slows the job down until one took it."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.store = f"sqlite:///{folder}/record.db"
        self.said = ""

    def on_trial_report(self, trial: Any, report: Any) -> None:
        super().on_trial_report(trial, report)
        if self.reports == 1:
            HyperparameterTuner.attach("job", store=self.store).add_trial({"eta": 0.5})
            self.said = hpo(*ADD, "eta=0.25", "--set", "subsample=1", "--store", self.store, columns=200)
        with Store(self.store) as store:
            if sum(bool(row.given) for row in store.trials("job")) < 2:
                time.sleep(0.1)


def test_it_is_added_from_python_and_the_command_line_and_marked(tmp_path: Path) -> None:
    adding = Adding(tmp_path)
    tuner(tmp_path, (adding,), max_jobs=60).fit(CHANNELS, job_name="job")
    with Store(adding.store) as store:
        first, second = [row for row in store.trials("job") if row.given]
    assert (first.hyperparameters["eta"], second.hyperparameters) == (0.5, {"eta": 0.25, "subsample": 1.0})
    mentions(adding.said, "job", "eta=0.25", "subsample=1", "hpo trials job")
    mentions(adding.said.replace("subsample=1", ""), "1")  # So many are before it.
    head, *lines = hpo("trials", "job", "--store", adding.store, columns=200).splitlines()
    assert "given" in head.split()
    assert [" added " in line for line in lines if first.trial_id in line or second.trial_id in line] == [True] * 2
    assert sum(" added " in line for line in lines) == 2
    listed = json.loads(hpo("trials", "job", "--json", "--store", adding.store))
    assert sorted(row["TrainingJobName"] for row in listed if row.get("Given") == "added") == [
        first.trial_id,
        second.trial_id,
    ]
    frame = tuner(tmp_path).attach("job", store=adding.store).analytics().dataframe()
    assert list(frame["TrainingJobName"][frame["Given"] == "added"]) == [first.trial_id, second.trial_id]


def running(store: Store, name: str = "busy", begun: int = 0, **changes: Any) -> None:
    job(store, name, values=[0.5] * begun, status="InProgress", ended_at=None, **changes)


def test_values_that_the_ranges_do_not_have_are_refused(store: Store) -> None:
    running(store)

    def adding(set_: str) -> None:
        raise ConfigurationError(hpo("trials", "add", "busy", "--set", set_, code=2))

    refuses_each(
        [
            (lambda: adding("eat=0.1"), ("eat", "eta")),
            (lambda: adding("eta=7"), ("eta", "7", "ContinuousParameter")),
            (lambda: adding("eta"), ("eta", "key=value")),
            (lambda: adding("eta=[1"), ("eta=[1", "YAML")),
            (lambda: adding("max_depth=2.5"), ("max_depth", "2.5", "IntegerParameter")),
        ],
        ConfigurationError,
    )
    assert store.additions("busy") == []


def test_a_job_that_is_over_or_full_or_unknown_is_refused(store: Store) -> None:
    job(store, "done", values=[0.5])
    job(store, "good", values=[0.5], reason="target_objective_metric_value 0.5 reached with 0.5")
    running(store, "full", begun=30)
    running(store, "grid", spec={"strategy": "Grid", "refuses_given": "a grid has no place for it"})
    for name, names in (
        ("done", ("done", "Completed", "hpo resume done --set tuning.max_jobs=N")),
        ("good", ("good", "Completed", "target_objective_metric_value", "0.5")),
        ("full", ("full", "30", "hpo stop full", "hpo resume full", "tuning.max_jobs=N")),
        ("grid", ("job 'grid'", "a grid has no place for it")),
    ):
        mentions(hpo("trials", "add", name, "--set", "eta=0.1", code=2), *names)
    assert "'fuLl'" in hpo("trials", "add", "fuLl", "--set", "eta=0.1", code=2)


def test_of_two_that_are_added_at_once_the_last_place_goes_to_one(store: Store) -> None:
    running(store, begun=28, spec={"points_to_evaluate": [{"eta": 0.1}] * 29})  # One point has still to come.
    gate, said = threading.Barrier(2), []

    def once() -> None:
        from hpo.sagemaker import add_trial

        with Store(store.url) as own:
            gate.wait(10)
            try:
                said.append(str(add_trial(own, "busy", {"eta": 0.1}).places))
            except ConfigurationError as error:
                said.append(str(error))

    threads = [threading.Thread(target=once) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    full, place = sorted(said, key=len, reverse=True)
    assert place == "0"
    mentions(full, "busy", "30", "28", "2")
    assert len(store.additions("busy")) == 1


def test_a_stopped_job_takes_it_when_it_is_resumed(store: Store) -> None:
    job(store, "rest", values=[0.5], status="Stopped", reason="stop requested")
    said = hpo("trials", "add", "rest", "--set", "eta=0.1", columns=200)
    mentions(said, "28", "rest", "Stopped", "stop requested", "hpo resume rest")
    added = json.loads(hpo("trials", "add", "rest", "--set", "eta=0.2", "--json"))
    assert added == {
        "HyperParameterTuningJobName": "rest",
        "HyperParameterTuningJobStatus": "Stopped",
        "HyperParameters": {"eta": 0.2},
        "AdditionsAhead": 1,
        "PlacesLeft": 27,
    }
    mentions(hpo("describe", "rest"), "eta=0.1", "eta=0.2")


def test_a_job_may_have_the_name_add(store: Store) -> None:
    job(store, "add", values=[0.5])
    assert "add-000" in hpo("trials", "add", columns=200)
    mentions(hpo("trials", "add", "add", "--set", "eta=0.1", code=2), "add", "Completed", "hpo resume add")


def test_a_job_that_is_deleted_takes_what_was_added_along(store: Store) -> None:
    job(store, "rest", values=[0.5], status="Stopped", reason="stop requested")
    hpo("trials", "add", "rest", "--set", "eta=0.1", columns=200)
    hpo("delete", "rest", "--yes", "--keep-files", columns=200)
    job(store, "rest", values=[0.5], status="Stopped", reason="stop requested")
    assert store.additions("rest") == []
