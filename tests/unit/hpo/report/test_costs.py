"""What billed seconds went into."""

from dataclasses import replace

import pytest

from hpo.report.pictures.costs import cost, costs, costs_compared, side_by_side
from tests.support.records import made_up
from tests.support.refusals import mentions


def test_all_rows_are_all_that_was_billed():
    data = made_up()
    rows = costs(data)
    assert {kind: sum(row[kind] for row in rows.values()) for kind in data.billed} == pytest.approx(data.billed)
    completed, stopped, lost, untuned, none = rows
    mentions(completed, "9 trials")
    mentions(stopped, "28 trials", "stopped")
    mentions(lost, "3 trials", "failed", "diverged")
    mentions(untuned, "un-tuned")
    failed = [trial.trial_id for trial in data.trials if trial.status in ("Failed", "Diverged")]
    spent = sum(data.billed_by_trial[trial] for trial in failed)
    assert sum(rows[lost].values()) == pytest.approx(spent)
    assert rows[none]["starting"] == data.billed["starting"]


def test_both_forms_show_every_row():
    data = made_up()
    figure = cost(data)
    labels = [text.replace("<br>", " ") for text in figure.interactive.layout.yaxis.ticktext]
    assert labels == [*costs(data)]
    bars = {trace.name: sum(trace.x) for trace in figure.interactive.data if trace.type == "bar"}
    assert bars == pytest.approx(data.billed, rel=1e-5)
    (axes,) = figure.still().axes
    assert len(axes.containers) == 4
    mentions(figure.title, "394 worker-seconds", "61% starting", "30% idle", "8% training", "1% checkpointing")


def test_money_is_shown_where_there_are_prices():
    data = made_up()
    priced = {"currency": "EUR", "total": 0.01234, "by_kind": {}, "per_worker_hour": 0.12}
    figure = cost(replace(data, job=replace(data.job, summary={"cost": priced})))
    mentions(figure.title, "394 worker-seconds", "0.01234 EUR")


def test_several_jobs_stand_side_by_side():
    jobs = [made_up(), made_up(name="other", halving=False), made_up(seed=2)]
    assert {name: sum(kinds.values()) for name, kinds in side_by_side(jobs).items()} == pytest.approx(
        {name: sum(job.billed.values()) for name, job in zip(["made-up", "other", "made-up (2)"], jobs, strict=True)}
    )
    figure = costs_compared(jobs)
    mentions(figure.title, "other", "390 worker-seconds", "made-up (2)", 398)
    assert costs_compared([replace(jobs[0], ledger=())]) is None
