"""What a job will take: the arithmetic and its laws, what earlier jobs say, and how far off it was for a real job."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from hpo.cost.ledger import Entry
from hpo.cost.limits import Limits
from hpo.cost.prices import Tariff
from hpo.cost.throughput import ManyWorkers
from hpo.forecasts.forecast import ONE_UNIT, PROBE, Forecast, Outlook, forecast_error
from hpo.forecasts.from_history import forecast_from, most_alike, pace_of, part_used
from hpo.jobs.files.inputs import record_inputs
from hpo.record.store import JobRow, LedgerRow, Store, TrialRow
from hpo.strategies.hyperband import lay_out
from tests.support.boosting import CHANNELS
from tests.support.jobs import make
from tests.support.refusals import mentions, missing_names
from tests.support.simulated import PLAN, WORKERS, search_of, simulate
from trainers.channels import open_channels

EUR = Tariff(per_worker_hour=0.36, currency="EUR")
PACE = ManyWorkers(workers=3, start=10.0, held=8.0, a_round=0.1, an_assignment=0.5)


def outlook(gangs: int = 2, **limits: Any) -> Outlook:
    """A job of 334 units in 46 assignments, and the 36 units of its probe and un-tuned run."""
    return Outlook(
        planned_units=334,
        planned_assignments=46,
        other_units=36,
        other_assignments=3,
        gangs=gangs,
        limits=Limits(tariff=EUR, **limits),
    )


def test_a_forecast_adds_up() -> None:
    """370 units and 49 assignments take 61.5 s; two gangs, up after 10 and 20 s, are done at 45.75 s.

    Of each start 8 s are billed.
    """
    made = outlook().forecast(PACE, source=PROBE)
    assert made.at_most == made.expected
    assert made.expected.wall_seconds == pytest.approx((61.5 + 30.0) / 2)
    assert made.expected.worker_seconds == pytest.approx(3 * (61.5 + 16.0))
    assert made.expected.cost == pytest.approx(0.02325)
    mentions(made.text, "probe", "46 s", "232 worker-seconds", "0.023 EUR")
    mentions(made.bill, "billed", "232 worker-seconds", "0.023 EUR")
    for said in (made.text, made.bill):
        assert said.count("232 worker-seconds") == 2, "what is expected, and the most"
    assert "46 s" not in made.bill


def test_what_earlier_jobs_left_untrained_is_expected_to_be_left_again() -> None:
    whole, half = (outlook().forecast(PACE, source="job a", used=used) for used in (1.0, 0.5))
    assert half.at_most == whole.at_most
    assert half.expected.worker_seconds < whole.expected.worker_seconds
    # Half of 334 units and 46 assignments, and the whole probe and un-tuned run, on one gang or two.
    assert half.expected.worker_seconds == pytest.approx(3 * (203 * 0.1 + 26 * 0.5 + 2 * 8.0))


def test_what_speaks_against_a_forecast_comes_last() -> None:
    one_unit = dataclasses.replace(PACE, cold=True)
    made = outlook(max_cost=0.01).forecast(one_unit, source=PROBE)
    assert made.text.endswith(f"{made.ends_early} {ONE_UNIT}")
    mentions(made.ends_early, "max_cost", "0.010 EUR")
    assert made.doubted("", "It is late.").text.endswith(f" {ONE_UNIT} It is late.")
    assert made.bill == outlook(max_cost=0.01).forecast(PACE, source=PROBE).bill
    assert outlook().forecast(PACE, source=PROBE).doubted("").doubts == ""


def test_gangs_that_are_not_worth_their_start_are_not_expected() -> None:
    made = outlook(gangs=50).forecast(PACE, source=PROBE)
    assert made.expected.worker_seconds < made.at_most.worker_seconds
    assert made.at_most.worker_seconds == pytest.approx(3 * (61.5 + 50 * 8.0))


def test_without_prices_there_is_no_money() -> None:
    made = dataclasses.replace(outlook(), limits=Limits()).forecast(PACE, source="job bank-1")
    assert made.expected.cost is None
    mentions(made.text, "job bank-1", "46 s", "232 worker-seconds")
    assert "EUR" not in made.text
    assert json.loads(json.dumps(made.to_json()))["at_most"]["cost"] is None


@pytest.mark.parametrize(
    ("limits", "names"),
    [
        ({"max_cost": 0.01}, ("max_cost", "0.010 EUR")),
        ({"max_seconds": 30.0}, ("max_runtime_in_seconds", "30 s")),
        ({"max_cost": 1.0, "max_seconds": 60.0}, ()),
    ],
)
def test_a_limit_that_ends_the_job_is_named(limits: dict[str, float], names: tuple[str, ...]) -> None:
    made = outlook(**limits).forecast(PACE, source=PROBE)
    assert bool(made.ends_early) == bool(names)
    mentions(made.ends_early, *names)
    assert made.text.endswith(made.ends_early)
    assert made.bill.endswith(made.ends_early)
    if not names:
        assert missing_names(made.text, *limits) == [*limits]


POSITIVE = st.floats(0.001, 100.0)


@given(POSITIVE, POSITIVE, POSITIVE, st.integers(1, 20), st.floats(0.0, 1.0), POSITIVE)
def test_the_expected_is_never_more_than_the_most_and_all_of_it_scales(
    start: float, a_round: float, own: float, gangs: int, used: float, factor: float
) -> None:
    pace = ManyWorkers(workers=2, start=start, held=start / 2, a_round=a_round, an_assignment=own)
    made = outlook(gangs).forecast(pace, source=PROBE, used=used)
    for name in ("worker_seconds", "wall_seconds", "cost"):
        assert getattr(made.expected, name) <= getattr(made.at_most, name) * (1 + 1e-9)
    slower = ManyWorkers(
        workers=2, start=start * factor, held=start * factor / 2, a_round=a_round * factor, an_assignment=own * factor
    )
    scaled = outlook(gangs).forecast(slower, source=PROBE, used=used)
    assert scaled.at_most.worker_seconds == pytest.approx(factor * made.at_most.worker_seconds)
    assert scaled.expected.wall_seconds == pytest.approx(factor * made.expected.wall_seconds)


def test_the_outlook_counts_what_runs_beside_the_search() -> None:
    search = search_of(PLAN, parallel=4, probes=(1, 5))
    made = Outlook.of(search, PLAN, in_hand=False)
    assert (made.units, made.assignments, made.gangs) == (PLAN.resource + 36, PLAN.assignments + 3, 4)
    assert Outlook.of(search, PLAN, in_hand=True).gangs == 1
    alone = Outlook.of(dataclasses.replace(search, untuned=False, probes=()), lay_out(2, 1, 9), in_hand=False)
    assert (alone.other_units, alone.other_assignments, alone.gangs) == (0, 0, 2)


def test_an_error_is_a_part_of_what_was_expected() -> None:
    assert forecast_error({"worker_seconds": 100.0, "wall_seconds": 10.0}, worker_seconds=150.0, wall_seconds=9.0) == {
        "worker_seconds": 0.5,
        "wall_seconds": pytest.approx(-0.1),
    }
    assert forecast_error({"worker_seconds": 0.0, "wall_seconds": 2.0}, worker_seconds=1.0, wall_seconds=2.0) == {
        "wall_seconds": 0.0
    }


def rows(entries: list[Entry]) -> list[LedgerRow]:
    return [
        LedgerRow(
            job="job",
            trial_id=entry.trial_id,
            gang=entry.gang,
            kind=entry.kind.value,
            worker_seconds=entry.worker_seconds,
            at=entry.at,
            workers=entry.workers,
        )
        for entry in entries
    ]


@pytest.mark.parametrize("parallel", [1, 4])
def test_the_same_job_again_is_forecast_as_it_was_billed(parallel: int) -> None:
    """Of a job that is done, the pace gives its own bill back."""
    controller, gangs, record = simulate(parallel=parallel, unit_seconds=lambda assignment: 0.25)
    pace = pace_of(rows(record.entries), PLAN.resource + 30)
    assert pace is not None
    assert (pace.workers, pace.start, pace.a_round) == (WORKERS, 8.0, pytest.approx(0.25))
    again = dataclasses.replace(
        outlook(parallel),
        planned_units=PLAN.resource,
        planned_assignments=PLAN.assignments,
        other_units=30,
        other_assignments=1,
    ).forecast(pace, source="job again")
    assert again.at_most.worker_seconds == pytest.approx(controller.ledger.total)
    # Gangs of a simulation start at once, and those of Ray one after the other.
    assert again.expected.wall_seconds == pytest.approx(gangs.now, rel=0.01 if parallel == 1 else 0.6)


def test_gangs_of_several_sizes_have_their_mean() -> None:
    ledger = []
    for workers in (1, 3):
        row = LedgerRow(
            job="j", gang=f"g{workers}", kind="starting", worker_seconds=10.0 * workers, at=0.0, workers=workers
        )
        ledger += [row, dataclasses.replace(row, trial_id="t", kind="training", worker_seconds=20.0 * workers)]
    pace = pace_of(ledger, 40)
    assert pace == ManyWorkers(workers=2.0, start=10.0, held=10.0, a_round=1.0, an_assignment=0.0)


def test_the_probe_of_an_earlier_job_is_none_of_its_work() -> None:
    row = LedgerRow(job="j", gang="g", kind="starting", worker_seconds=5.0, at=0.0, workers=1)
    trained = dataclasses.replace(row, trial_id="j-000", kind="training", worker_seconds=8.0)
    probe = dataclasses.replace(row, trial_id="probe", kind="training", worker_seconds=99.0)
    assert pace_of([row, probe, trained], 4) == ManyWorkers(
        workers=1.0, start=5.0, held=5.0, a_round=2.0, an_assignment=0.0
    )


def test_a_ledger_that_says_nothing_gives_no_pace() -> None:
    row = LedgerRow(job="j", gang="g", kind="starting", worker_seconds=5.0, at=0.0, workers=1)
    trained = dataclasses.replace(row, trial_id="j-000", kind="training")
    assert pace_of([], 10) is None
    assert pace_of([row], 10) is None
    assert pace_of([row, trained], 0) is None
    assert pace_of([row, dataclasses.replace(trained, workers=0)], 10) is None, "an older Warmband's"


def spec(**changes: Any) -> dict[str, Any]:
    tuner, _ = make()
    channels = {name: changes.pop("rows", table) for name, table in CHANNELS.items()}
    return {**tuner.settings.to_json(record_inputs(open_channels(channels), "jobs"), 7), **changes}


def ended(name: str, job_spec: dict[str, Any], **changes: Any) -> JobRow:
    summary = {"resource_used": 50, "resource_planned": 100}
    row = JobRow(name=name, status="Completed", created_at=1.0, ended_at=9.0, spec=job_spec)
    return dataclasses.replace(row, **{"summary": summary, **changes})


def test_only_jobs_of_the_same_trainer_workers_and_data_count() -> None:
    mine = spec()
    other_trainer = {**mine["estimator"], "trainer": "TorchTrainer"}
    more_workers = {**mine["estimator"], "scaling": {**mine["estimator"]["scaling"], "num_workers": 4}}
    other_statics = {**mine["estimator"], "hyperparameters": {"eta": 0.9}}
    no_data = {name: {"kind": "ray.data"} for name in mine["inputs"]}
    jobs = [
        ended("running", mine, ended_at=None),
        ended("other-machine", {**mine, "environment": {**mine["environment"], "cpus": 512}}),
        ended("other-statics", {**mine, "estimator": other_statics}),
        ended("newest", mine),
        ended("older", mine),
        ended("nothing-trained", mine, summary={}),
        ended("other-trainer", {**mine, "estimator": other_trainer}),
        ended("more-workers", {**mine, "estimator": more_workers}),
        ended("other-rows", spec(rows=CHANNELS["validation"])),
        ended("unknown-rows", {**mine, "inputs": no_data}),
        ended("before-fingerprints", {**mine, "inputs": {"train": {"kind": "pandas"}}}),
    ]
    assert [job.name for job in most_alike(jobs, mine)] == ["newest", "older", "other-statics", "other-machine"]
    assert most_alike(jobs, {**mine, "inputs": no_data}) == []


def test_the_part_of_a_plan_that_was_used_is_known_of_whole_jobs_only() -> None:
    assert part_used(ended("a", {})) == 0.5
    assert part_used(ended("a", {}, status="Stopped", reason="stop requested")) == 1.0
    assert part_used(ended("a", {}, reason="target reached")) == 1.0


def test_an_earlier_job_without_a_pace_is_passed_over(tmp_path: Path) -> None:
    mine = spec()
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        for name, workers in (("paced", 1), ("unpaced", 0)):
            store.create_job(ended(name, mine, created_at=2.0 if workers else 3.0))
            with store.writer(name) as writer:
                writer.trial(TrialRow(job=name, trial_id="t", number=0, resource=10))
                row = LedgerRow(job=name, gang="g", kind="starting", worker_seconds=5.0, at=1.0, workers=workers)
                writer.ledger(row, dataclasses.replace(row, trial_id="t", kind="training"))
        found = forecast_from(store, mine, outlook())
        assert found is not None
        assert found.source == "job paced"
        assert forecast_from(store, spec(rows=CHANNELS["validation"]), outlook()) is None


def test_a_forecast_in_hand_measures_and_leaves_nothing(home: Path) -> None:
    tuner, _ = make()
    made = tuner.forecast(CHANNELS)
    assert isinstance(made, Forecast)
    assert made.source == PROBE
    assert 0 < made.expected.worker_seconds <= made.at_most.worker_seconds
    with Store() as store:
        assert store.jobs() == []
    assert not list((home / "jobs").glob("*"))
    assert tuner.latest_tuning_job is None
