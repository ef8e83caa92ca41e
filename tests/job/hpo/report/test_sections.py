"""What stands on a job's page, whatever has become of the job."""

from __future__ import annotations

from dataclasses import replace
from statistics import fmean, stdev
from typing import Any

import pytest

from hpo.report import Code, Facts, JobData, Table, job_page, job_sections
from hpo.report.page.cells import cell
from hpo.report.page.page import Block
from hpo.report.page.sections import OPENED_FAILURES
from hpo.report.pictures.figure import Figure
from tests.support.records import made_up
from tests.support.refusals import mentions, missing_names


def titles(data: JobData) -> list[str]:
    return [section.title for section in job_sections(data)]


def blocks(data: JobData, title: str) -> list[Block]:
    return next(list(section.blocks) for section in job_sections(data) if section.title == title)


def table(data: JobData, title: str, place: int = 0) -> dict[str, list[str]]:
    """A table as texts, by its rows' first cells."""
    found = [block for block in blocks(data, title) if isinstance(block, Table)][place]
    digits = [getattr(column, "digits", None) for column in found.columns]
    said = [[cell(value, places) for value, places in zip(row, digits, strict=True)] for row in found.rows]
    return {row[0].text: [f"{each.text} {each.error}".strip() for each in row[1:]] for row in said}


def with_summary(data: JobData, **summary: Any) -> JobData:
    return replace(data, job=replace(data.job, summary={**data.job.summary, **summary}))


@pytest.fixture(scope="module")
def data() -> JobData:
    return made_up(trials=30, trainer="ParameterServerTrainer")


def test_the_parts_come_in_the_order_in_which_they_are_asked_for(data: JobData) -> None:
    assert titles(data) == [
        *("Result", "Learning", "Cost", "Hyperparameters", "Model", "Staleness", "Configuration", "Trials"),
        *("Failures", "Environment"),
    ]


def test_means_of_repeats_have_their_standard_errors(data: JobData) -> None:
    repeated = replace(data, job=replace(data.job, spec={**data.job.spec, "repeats": 2}))
    best = repeated.best
    assert best is not None
    values = [value for each in repeated.repeats(best) if (value := data.objective(each)) is not None]
    mean, error = fmean(values), stdev(values) / 2**0.5
    said = table(repeated, "Trials")[best.trial_id][2]
    found, found_error = map(float, said.split(" \u00b1 "))
    assert found == pytest.approx(mean, abs=1e-4)
    assert found_error == pytest.approx(error, rel=0.1)
    first, last = repeated.repeats(best)[0].trial_id, repeated.repeats(best)[-1].number
    [row] = [row for label, row in table(repeated, "Result").items() if not missing_names(label, first, last)]
    assert row[0] == said


def test_every_picture_has_a_place_in_a_section(data: JobData) -> None:
    shown = {
        block.name: section.title
        for section in job_sections(data)
        for block in section.blocks
        if isinstance(block, Figure)
    }
    assert shown == {
        "learning-curves": "Learning",
        "brackets": "Learning",
        "cost": "Cost",
        "progress": "Cost",
        "importance": "Hyperparameters",
        "parallel-coordinates": "Hyperparameters",
        "slices": "Model",
        "contours": "Model",
        "predictions": "Model",
        "staleness": "Staleness",
    }


def test_a_job_without_a_trial_has_a_page() -> None:
    empty = replace(made_up(trials=1), trials=(), untuned=None, reports={}, ledger=())
    assert titles(empty) == ["Result", "Environment"]
    page = job_page(empty)
    mentions(page.verdict, "validation:auc")
    assert page.verdict in page.html()


def test_a_job_of_an_older_warmband_has_a_page(data: JobData) -> None:
    old = replace(data, job=replace(data.job, summary={}, plan={}))
    assert "inputs" in old.job.spec
    spec = {name: value for name, value in old.job.spec.items() if name not in ("inputs", "environment")}
    page = job_page(replace(old, job=replace(old.job, spec=spec)))
    mentions(page.verdict, "validation:auc", "0.7842")
    assert page.verdict in page.html()


def test_a_job_under_way_says_so() -> None:
    page = job_page(made_up(trials=12, ended=False))
    mentions(page.verdict, "12 trials", "validation:auc")
    mentions(page.subtitle, "Hyperband", "7 hyperparameters", "XGBoostTrainer", "InProgress")


def test_scores_are_those_of_the_channel_and_of_the_others_like_it(data: JobData) -> None:
    assert data.best is not None
    assert data.untuned is not None
    best, untuned = data.objective(data.best), data.objective(data.untuned)
    assert best is not None
    assert untuned is not None
    found = table(with_summary(data, best={"standard_error": 0.01234}), "Result")
    billed = data.billed_by_trial[data.best.trial_id]
    [row] = [row for label, row in found.items() if not missing_names(label, data.best.trial_id)]
    assert row == [f"{best:.4f} ± 0.0123", f"{best - 0.01:.4f}", "27", f"{billed:.2f}"]
    assert found["un-tuned"][0] == f"{untuned:.4f}"
    assert found["difference"][0] == f"{best - untuned:+.4f}"


def test_the_best_value_counts_where_the_job_says_so(data: JobData) -> None:
    by_best = replace(data, job=replace(data.job, spec={**data.job.spec, "objective_value": "best"}))
    best = by_best.best
    assert best is not None
    [row] = [row for label, row in table(by_best, "Result").items() if not missing_names(label, best.trial_id)]
    assert row[0] == f"{best.best_objective:.4f}"
    assert row[2] == str(best.best_resource)


def test_a_trial_has_its_row_and_its_hyperparameters(data: JobData) -> None:
    found = table(data, "Trials")
    assert data.best is not None
    assert next(iter(found)) == data.best.trial_id
    for trial in data.trials:
        row = found[trial.trial_id]
        assert row[0] == trial.status
        assert row[2] == str(trial.resource)
        assert row[3] == str((trial.bracket or 0) + 1)
        assert row[-1] == cell(trial.hyperparameters["subsample"]).text


def test_cost_is_split_and_paid_for(data: JobData) -> None:
    billed = data.billed
    total = sum(billed.values())
    found = table(data, "Cost")
    assert {name: row[0] for name, row in found.items()} == {
        name: f"{seconds:,.1f}" for name, seconds in {**billed, "in all": total}.items()
    }
    cost = {"currency": "EUR", "total": 3.0, "by_kind": dict.fromkeys(billed, 0.75)}
    paid = table(with_summary(data, cost=cost), "Cost")
    assert [row[2] for row in paid.values()] == ["0.75", "0.75", "0.75", "0.75", "3"]


def test_a_forecast_stands_beside_what_the_job_came_to(data: JobData) -> None:
    total = sum(data.billed.values())
    told = {"worker_seconds": total / 2, "wall_seconds": 10.0, "cost": None}
    forecast = {"source": "probe", "expected": told, "at_most": {**told, "wall_seconds": 40.0}}
    found = table(with_summary(data, forecast=forecast, wall_seconds=8.0), "Cost", 1)
    half, whole = cell(total / 2).text, cell(total).text
    assert found == {
        "worker-seconds": [half, half, whole, "+100"],
        "wall time, s": ["40", "10", "8", "-20"],
    }


def test_the_configuration_can_be_copied(data: JobData) -> None:
    values = {"eta": 0.25, "num_round": 27}
    trainer = {"trainer": "XGBoostTrainer", "scaling": {"num_workers": 3}, "hyperparameters": values}
    codes = [
        block
        for block in blocks(with_summary(data, best={"trainer": trainer}), "Configuration")
        if isinstance(block, Code)
    ]
    assert [code.language for code in codes] == ["YAML", "Python", "Python"]
    made: dict[str, Any] = {}
    exec(codes[1].text, made)
    assert made["trainer"].hyperparameters == values
    assert "attach('made-up')" in codes[2].text
    assert not [block for block in blocks(data, "Configuration") if isinstance(block, Code)]


def with_spec(data: JobData, **spec: Any) -> JobData:
    return replace(data, job=replace(data.job, spec={**data.job.spec, **spec}))


def test_what_autotune_chose_stands_with_its_reasons(data: JobData) -> None:
    assert "Autotune" not in titles(data)
    chosen = [{"name": "eta", "chosen": "0.01 to 1", "why": "<steps>"}, {"name": "max_jobs", "chosen": "40", "why": ""}]
    assert table(with_spec(data, autotune=chosen), "Autotune") == {
        "eta": ["0.01 to 1", "<steps>"],
        "max_jobs": ["40", ""],
    }


def test_a_searcher_and_a_scheduler_have_their_names(data: JobData) -> None:
    sampler = {"type": "optuna.samplers:TPESampler", "arguments": {"n_startup_trials": 4}}
    parts = {
        "searcher": {"type": "ray.tune.search.optuna:OptunaSearch", "arguments": {"sampler": sampler}},
        "scheduler": {"type": "shop.rules:Rules.Mine", "arguments": None},
    }
    given = with_spec(data, strategy="RayTune", strategy_config=parts)
    mentions(job_page(given).subtitle, "RayTune", "OptunaSearch", "Mine")
    (facts, *_) = [block for block in blocks(given, "Environment") if isinstance(block, Facts)]
    searcher = "OptunaSearch(sampler=TPESampler(n_startup_trials=4))"
    mentions(dict(facts.items)["strategy"], "RayTune", "searcher", searcher, "scheduler", "Mine")
    no_brackets = replace(given, trials=tuple(replace(trial, bracket=None) for trial in given.trials))
    (trials,) = [block for block in blocks(no_brackets, "Trials") if isinstance(block, Table)]
    assert "bracket" not in trials.columns


def test_of_several_trainers_the_configuration_is_of_the_one_that_the_best_has(data: JobData) -> None:
    assert data.best is not None
    values = {"estimator": "a", "a.eta": 0.5}
    best = replace(data.best, hyperparameters=values)
    parts = {"a": {"hyperparameters": {"rounds": 3}}, "b": {"hyperparameters": {"depth": 4}}}
    static = {"estimator": "a", "a.rounds": 3, "b.depth": 4}
    estimator = {**data.job.spec["estimator"], "trainer": "SeveralTrainers", "hyperparameters": static}
    trials = tuple(best if trial is data.best else trial for trial in data.trials)
    several = with_spec(replace(data, trials=trials), estimator={**estimator, "options": {"trainers": parts}})
    assert list(table(several, "Configuration")) == ["estimator", "a.eta", "a.rounds"]


def test_failures_come_with_their_tracebacks_folded(data: JobData) -> None:
    failed = [trial for trial in data.trials if trial.status in ("Failed", "Diverged")]
    codes = [block for block in blocks(data, "Failures") if isinstance(block, Code)]
    assert [code.caption.partition(" ")[0] for code in codes] == [trial.trial_id for trial in failed]
    assert all(code.folded for code in codes)
    first = next(code for code in codes if "failed" in code.caption)
    assert first.text == "ValueError: no luck\n\nTraceback (most recent call last):\n  ..."


def test_of_very_many_failures_some_are_shown_and_the_rest_counted(data: JobData) -> None:
    failed = tuple(
        replace(data.trials[0], number=n, trial_id=f"t{n}", status="Failed") for n in range(OPENED_FAILURES + 3)
    )
    found = blocks(replace(data, trials=failed, untuned=None), "Failures")
    assert len(found) == OPENED_FAILURES + 1
    mentions(str(found[-1]), 3, "hpo trials made-up --tracebacks")


ELASTIC, TUNED = [2, 4], {"type": "Integer", "min_value": 1, "max_value": 8, "scaling_type": "Auto"}


@pytest.mark.parametrize(
    ("scaling", "static", "ranges", "names"),
    [
        (0, {}, {}, ("process",)),
        (1, {}, {}, (1, "trial")),
        (ELASTIC, {}, {}, (2, 4, "trial")),
        (2, {"num_workers": 3}, {}, (3, "trial")),
        (2, {}, {"num_workers": TUNED}, ("tuned", 1, 8)),
        (2, {"num_workers": 3}, {"num_workers": {"type": "Categorical", "values": [2, 4]}}, ("tuned", 2, 4)),
    ],
)
def test_the_environment_says_how_many_workers_whatever_their_number(
    data: JobData, scaling: Any, static: dict[str, Any], ranges: dict[str, Any], names: tuple[object, ...]
) -> None:
    estimator = {"trainer": "XGBoostTrainer", "scaling": {"num_workers": scaling}, "hyperparameters": static}
    spec = {**data.job.spec, "estimator": estimator, "hyperparameter_ranges": ranges}
    [facts, *_] = blocks(replace(data, job=replace(data.job, spec=spec)), "Environment")
    assert isinstance(facts, Facts)
    mentions(dict(facts.items)["workers"], *names)


def test_the_environment_names_versions_machine_seed_and_data(data: JobData) -> None:
    environment = {"python": "3.11.9", "ray": "2.60.0", "platform": "Linux", "cpus": 2, "memory_bytes": 16e9, "gpus": 0}
    inputs = {"train": {"kind": "csv", "rows": 35009, "columns": ["y"], "files": list("abcde"), "fingerprint": "12ab"}}
    inputs["train"] |= {"target": "y", "base_margin": ["m", "n"], "weight": None}
    spec = {
        **data.job.spec,
        "environment": environment,
        "inputs": inputs,
        "max_cost": 2.0,
        "prices": {"currency": "EUR"},
    }
    full = replace(data, job=replace(data.job, spec=spec))
    facts = {
        name: value for block in blocks(full, "Environment") if isinstance(block, Facts) for name, value in block.items
    }
    assert facts["seed"] == "1"
    mentions(facts["workers"], 3, "trial")
    assert facts["cost limit"] == "2.00 EUR"
    assert (facts["ray"], facts["memory"], facts["processors"]) == ("2.60.0", "16.0 GB", 2)
    [(channel, [rows, width, roles, files, fingerprint])] = table(full, "Environment").items()
    assert (channel, rows, width, fingerprint) == ("train", "35,009", "1", "12ab")
    mentions(roles, "predicts", "y", "weight", "base_margin", "m", "n")
    mentions(files, "a", "b", "c", 2)


def test_who_stopped_a_trial_is_named(data: JobData) -> None:
    first, *others = data.trials
    stopped = replace(first, status="Stopped", stopped={"by": "alice <b>"})
    assert "stopped by" not in columns(data)
    told = replace(data, trials=(stopped, *others))
    facts = [block for block in blocks(told, "Result") if isinstance(block, Facts)]
    assert any(not missing_names(str(text), 1, "alice <b>") for each in facts for _, text in each.items)
    place = columns(told).index("stopped by") - 1
    said = table(told, "Trials")
    assert said[first.trial_id][place] == "alice <b>"
    assert {row[place] for name, row in said.items() if name != first.trial_id} == {said[others[0].trial_id][place]}


def columns(data: JobData) -> list[str]:
    (found,) = [block for block in blocks(data, "Trials") if isinstance(block, Table)]
    return [column if isinstance(column, str) else column.title for column in found.columns]
