"""The roster of gangs: who serves what, and how far it is."""

from __future__ import annotations

from hpo.record import LedgerRow
from hpo.search.roster import Roster
from hpo.search.trial import PROBE, TrialRun, new_run, next_assignment
from tests.support.simulated import PLAN, search_of
from trainers.gangs.messages import Report

SEARCH = search_of(PLAN, parallel=2)


def serving(roster: Roster, gang: str, run: TrialRun, steps: list[int]) -> None:
    """A gang serves a trial, and reports so far."""
    roster.up(gang, run.workers)
    roster.begin(gang, run, next_assignment(SEARCH, run, run.limit))
    for step in steps:
        assert roster.heard(gang, run.id, [Report(step=step, metrics={})]) is run


def test_units_on_their_way_are_counted_until_the_trial_is_back() -> None:
    roster = Roster(lambda: 0.0)
    run, other = (new_run(SEARCH, number, f"job-{number:03d}", {}) for number in range(2))
    run.resource = 3
    serving(roster, "a", run, [4, 5, 10])
    serving(roster, "b", other, [1])
    serving(roster, "c", new_run(SEARCH, -2, PROBE, {}), [1, 2])
    assert roster.ahead == 8
    roster.heard("a", run.id)
    roster.heard("a", other.id, [Report(step=30, metrics={})])
    assert roster.ahead == 8, "news of what a gang does not serve came late"
    roster.done("a")
    roster.lost("b", ended=False)
    assert roster.ahead == 0


def test_a_trial_s_time_is_that_of_its_gangs_and_of_waiting_for_another() -> None:
    now = 100.0
    billed = LedgerRow(job="job", trial_id="job-000", gang="z", kind="training", worker_seconds=6, at=1.0, workers=2)
    roster = Roster(lambda: now, [billed])
    run = new_run(SEARCH, 0, "job-000", {})
    serving(roster, "a", run, [])
    now = 105.0
    assert roster.seconds(run) == (8.0, 0.0)
    assert roster.lost("a", ended=True) is run
    now = 115.0
    assert roster.seconds(run) == (8.0, 10.0)
    serving(roster, "b", run, [])
    now = 116.0
    assert roster.seconds(run) == (9.0, 10.0)
    roster.done("b")
    now = 200.0
    assert roster.seconds(run) == (9.0, 10.0), "at a rung it waits for others, not for machines"


def test_it_tells_where_gangs_are_and_what_each_does_now() -> None:
    roster = Roster(lambda: 0.0)
    run = new_run(SEARCH, 0, "job-000", {})
    roster.up("a", 3, ["left", "left", "right"], ["GPU 0", "GPU 1", "GPU 0"])
    roster.up("b", 2, ["left", "left"], ["2 cores", "2 cores"])
    roster.begin("a", run, next_assignment(SEARCH, run, run.limit))
    a = {"left": {"GPU 0": 1, "GPU 1": 1}, "right": {"GPU 0": 1}}
    b = {"left": {"2 cores": 2}}
    assert roster.told() == {
        "a": {"does": "serves", "trial": "job-000", "places": a},
        "b": {"does": "idle", "trial": "", "places": b},
    }
    roster.lost("a", ended=False)
    roster.released("b")
    assert roster.told() == {"a": {"does": "lost", "trial": "", "places": a}}
    roster.up("a", 3, ["right"] * 3, ["GPU 0", "GPU 1", "GPU 2"])
    assert roster.told()["a"]["places"] == {"right": {"GPU 0": 1, "GPU 1": 1, "GPU 2": 1}}
