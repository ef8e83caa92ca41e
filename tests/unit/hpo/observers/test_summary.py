"""What a job prints before it starts and when it ends, on a terminal of 80 columns."""

from __future__ import annotations

import io
import json
import math
import re
from typing import Any, Literal

import pytest
from ray.train import ScalingConfig
from rich.console import Console, RenderableType

from hpo.cost.limits import Limits
from hpo.cost.prices import Tariff
from hpo.observers.summary import Brief, show_code, show_plan, show_summary, summarize
from hpo.record.tables import encode
from hpo.search.trial import UNTUNED
from hpo.strategies.hyperband import lay_out, run_all
from hpo.yaml_core import load
from tests.support.refusals import mentions, missing_names
from tests.support.simulated import METRIC, PLAN, rising, simulate
from trainers import XGBoostTrainer
from trainers.gangs.messages import Assignment

TRAINER = XGBoostTrainer(
    scaling=ScalingConfig(num_workers=3, resources_per_worker={"CPU": 2}),
    hyperparameters={
        "objective": "binary:logistic",
        "eval_metric": ["auc", "logloss"],
        "num_round": 150,
        "eta": 0.5,
        "gamma": 1e-07,
        "interaction_constraints": "[[0, 1], [2]]",
    },
)


def printed(what: RenderableType) -> str:
    console = Console(file=io.StringIO(), width=80, highlight=False)
    console.print(what)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert all(len(line) <= 80 for line in text.splitlines())
    return text


def rows(text: str) -> dict[str, str]:
    """What stands beside each heading; a heading's further lines are joined."""
    found: dict[str, str] = {}
    heading = ""
    for line in text.splitlines()[1:]:
        left, right = line[2:14].strip(), line[14:].strip()
        heading = left or heading
        found[heading] = f"{found.get(heading, '')} {right}".strip()
    return found


def shown(status: str = "Completed", **options: Any) -> tuple[str, dict[str, Any]]:
    """A simulated job's summary: as text, and as the record keeps it."""
    controller, _, _ = simulate(**options)
    summary = summarize(controller, options.get("plan", PLAN), lambda value: None, TRAINER)
    return printed(show_summary("job", status, METRIC, summary, verbose=True)), summary


# ---- before


def test_the_plan_has_a_line_a_kind_of_bracket_and_the_most_it_can_use() -> None:
    text = printed(show_plan(PLAN))
    for bracket in PLAN.brackets:
        line = "  ->  ".join(f"{size} to {rung}" for rung, size in zip(bracket.rungs, bracket.sizes, strict=True))
        assert line in text
    assert PLAN.resource == 334
    mentions(text.splitlines()[-1], 334, 900, 30, "37%")
    assert " x " not in text


def test_brackets_that_are_alike_are_counted() -> None:
    plan = lay_out(44, 1, 9)
    assert len(plan.brackets) > len(set(plan.brackets))
    text = printed(show_plan(plan))
    lines = [line for line in text.splitlines() if " to " in line]
    assert len(lines) == len(set(plan.brackets))
    assert lines[0].split()[:2] == ["2", "x"]
    assert sum(int(line.split()[-1]) for line in lines) == plan.resource


def test_a_search_that_stops_nothing_uses_all() -> None:
    mentions(printed(show_plan(run_all(5, 10))).splitlines()[-1], 50, 5, "100%")


# ---- after


def test_the_summary_of_a_whole_job() -> None:
    text, summary = shown(static={"eta": 0.25})
    mentions(text.splitlines()[0], "job", "Completed")
    found = rows(text)
    mentions(found["trials"], "8 completed", "22 stopped")
    mentions(found["units used"], 334, 900, "37.1%")
    best = summary["best"]
    mentions(found["best"], f"{METRIC} {best['value']:.5f}", best["trial"], "unit 30 of 30")
    mentions(found["best"], f"eta={best['hyperparameters']['eta']:.4g}")
    mentions(found["un-tuned"], f"{METRIC} {0.25 * (1 - 0.9**30):.5f}", "static", "30 units")
    mentions(found["wall time"], "4 gangs", "training", f"{summary['first_step_seconds']:.1f} s")
    for kind, seconds in summary["worker_seconds"].items():
        mentions(found["billed"], kind, f"{seconds:.1f}")
    mentions(found["billed"], f"{sum(summary['worker_seconds'].values()):.1f} worker-seconds")
    assert "reason" not in found


def test_money_stands_behind_worker_seconds_where_there_are_prices() -> None:
    assert shown()[1]["cost"] is None
    text, summary = shown(limits=Limits(tariff=Tariff(per_worker_hour=36.0, currency="EUR")))
    total = sum(summary["worker_seconds"].values())
    cost = summary["cost"]
    assert (cost["currency"], cost["per_worker_hour"]) == ("EUR", 36.0)
    assert cost["total"] == pytest.approx(total / 100) == pytest.approx(sum(cost["by_kind"].values()))
    assert cost["by_kind"].keys() == summary["worker_seconds"].keys()
    mentions(rows(text)["billed"], f"{total:.1f} worker-seconds", f"{total / 100:.2f} EUR", "starting")


def test_a_summary_of_an_older_warmband_can_be_shown() -> None:
    _, summary = shown()
    older = {name: value for name, value in summary.items() if name not in ("cost", "forecast")}
    assert "worker-seconds" in rows(printed(show_summary("job", "Completed", METRIC, older, verbose=True)))["billed"]


def test_the_noise_of_the_objective_is_said_where_it_is_known() -> None:
    controller, _, _ = simulate()
    summary = summarize(controller, PLAN, lambda value: value / 50, TRAINER)
    assert summary["best"]["standard_error"] == summary["best"]["value"] / 50
    best = rows(printed(show_summary("job", "Completed", METRIC, summary, verbose=True)))["best"]
    mentions(best, "standard error", METRIC, f"{summary['best']['standard_error']:.4f}")
    assert "standard error" not in rows(shown()[0])["best"]


def test_the_same_metric_on_other_rows_stands_beside() -> None:
    controller, _, _ = simulate()
    summary = summarize(controller, PLAN, lambda value: None, TRAINER)
    value = summary["best"]["value"]
    summary["best"]["metrics"] = {"test:auc": 0.125, METRIC: value, "test:logloss": 0.5}
    found = rows(printed(show_summary("job", "Completed", METRIC, summary, verbose=True)))
    mentions(found["best"], f"{METRIC} {value:.5f}", "test:auc 0.12500")
    assert "logloss" not in found["best"]


def test_the_record_can_keep_it() -> None:
    _, summary = shown()
    assert json.loads(json.dumps(encode(summary))) == summary
    assert summary["resource_planned"] == summary["resource_used"] == PLAN.resource
    assert summary["resource_possible"] == PLAN.full_resource
    assert sum(summary["trials"].values()) == PLAN.trials


def test_why_it_was_stopped_comes_first() -> None:
    text, summary = shown("Stopped", parallel=2, limits=Limits(max_seconds=60.0))
    mentions(text.splitlines()[0], "job", "Stopped")
    assert text.splitlines()[1].split("  ")[1:2] == ["reason"]
    assert rows(text)["reason"] == summary["stopped"]
    mentions(summary["stopped"], "max_runtime_in_seconds", "60 s")
    assert re.search(r"\b\d+\.\d s\b", summary["stopped"])
    used = summary["resource_used"]
    assert 0 < used < PLAN.resource
    mentions(rows(text)["units used"], used, 900)


def test_failed_trials_are_counted() -> None:
    def curve(assignment: Assignment, step: int) -> float:
        if assignment.trial_id in ("job-003", "job-007"):
            raise ValueError("max_depth must be positive")
        return rising(assignment, step)

    text, summary = shown(curve=curve)
    assert summary["trials"]["Failed"] == 2
    mentions(rows(text)["trials"], "2 failed", "2 trials", "job-003", "max_depth must be positive")


@pytest.mark.parametrize(
    ("mode", "untuned", "outcome", "is_result"),
    [
        ("max", 0.5, "gain", False),
        ("max", 2.0, "worse", True),
        ("min", 0.5, "worse", True),
        ("min", 2.0, "gain", False),
        ("max", 1.0, "no difference", False),  # The trial that was suggested first had it after fewer units.
    ],
)
def test_the_untuned_run_is_the_result_where_it_is_better(
    mode: Literal["max", "min"], untuned: float, outcome: str, *, is_result: bool
) -> None:
    def curve(assignment: Assignment, step: int) -> float:
        return untuned if assignment.trial_id == UNTUNED else 1.0

    text, summary = shown(curve=curve, mode=mode)
    assert (summary["best"]["trial"] == UNTUNED) == is_result
    assert (summary["best_trial"] is not None) == is_result
    assert summary["gain"]["outcome"] == outcome
    found = rows(text)
    assert missing_names(found["un-tuned"], "the job's result") == ([] if is_result else ["the job's result"])
    assert ("the un-tuned run" in found["best"]) == is_result
    assert ("best trial" in found) == is_result
    assert " ".join(summary["gain"]["sentence"].split()) in " ".join(found["un-tuned"].split())


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_an_untuned_run_without_a_finite_value_is_no_candidate(value: float) -> None:
    def curve(assignment: Assignment, step: int) -> float:
        return value if assignment.trial_id == UNTUNED else 1.0

    _, summary = shown(curve=curve)
    assert summary["best"]["trial"] != UNTUNED
    assert summary["best_trial"] is None
    assert summary["gain"] is None


def test_a_gain_within_the_standard_error_is_none() -> None:
    def curve(assignment: Assignment, step: int) -> float:
        return 0.75 if assignment.trial_id == UNTUNED else 0.76

    controller, _, _ = simulate(curve=curve)
    assert summarize(controller, PLAN, lambda value: 0.02, TRAINER)["gain"]["outcome"] == "no difference"
    assert summarize(controller, PLAN, lambda value: 0.005, TRAINER)["gain"]["outcome"] == "gain"


def test_an_untuned_run_that_failed_says_why() -> None:
    def curve(assignment: Assignment, step: int) -> float:
        if assignment.trial_id == UNTUNED:
            raise ValueError("num_class must be given")
        return rising(assignment, step)

    mentions(rows(shown(curve=curve)[0])["un-tuned"], "failed", "num_class must be given")


def test_square_brackets_are_printed_as_they_are() -> None:
    """Not taken for rich's markup, in which "[/x]" is an error."""

    def curve(assignment: Assignment, step: int) -> float:
        if assignment.trial_id == UNTUNED:
            raise ValueError("[bold] is in [/no/such/file]")
        return rising(assignment, step)

    controller, _, _ = simulate(curve=curve)
    summary = summarize(controller, PLAN, lambda value: None, TRAINER)
    summary["best"]["hyperparameters"] = {"booster": "[gbtree]"}
    summary["best"]["checkpoint"] = "/jobs/[a]/000030"
    found = rows(printed(show_summary("job", "Completed", METRIC, summary, verbose=True)))
    mentions(found["un-tuned"], "failed", "[bold] is in [/no/such/file]")
    assert found["best"].endswith("booster=[gbtree]")
    assert "/jobs/[a]/000030" in printed(show_code("job", summary))


def test_an_untuned_run_without_a_value_says_that() -> None:
    def curve(assignment: Assignment, step: int) -> float:
        return math.nan if assignment.trial_id == UNTUNED else rising(assignment, step)

    mentions(rows(shown(curve=curve)[0])["un-tuned"], "diverged", "30 units", "validation:auc", "nan", 1)


def test_details_of_the_best_have_a_line_where_they_are_short() -> None:
    _, summary = shown()
    before = rows(printed(show_summary("job", "Completed", METRIC, summary, verbose=True)))
    summary["best"]["details"] = {"staleness": {"0": 12, "1": 4}, "bytes": 1024, "waited": 0.12345}
    text = printed(show_summary("job", "Completed", METRIC, summary, verbose=True))
    assert "staleness (0 12, 1 4), bytes 1024, waited 0.1235" in text
    summary["best"]["details"] = {"staleness": {str(number): 1 for number in range(40)}}
    assert rows(printed(show_summary("job", "Completed", METRIC, summary, verbose=True))) == before


def test_trials_that_diverged_are_counted_as_that() -> None:
    def curve(assignment: Assignment, step: int) -> float:
        return math.nan if assignment.trial_id in ("job-003", "job-020") else rising(assignment, step)

    text, summary = shown(curve=curve)
    assert summary["trials"] == {"Completed": 8, "Stopped": 20, "Diverged": 2, "Failed": 0}
    mentions(rows(text)["trials"], "8 completed", "20 stopped", "2 diverged")
    assert "failed" not in rows(text)["trials"]
    assert summary["errors"] == []


def test_without_an_untuned_run_there_is_no_line_for_it() -> None:
    assert "un-tuned" not in rows(shown(untuned=False)[0])


def test_a_job_without_a_finite_value_has_no_best() -> None:
    text, summary = shown(curve=lambda assignment, step: math.nan)
    assert summary["best"] is None
    mentions(rows(text)["best"], "none", "finite")
    assert not show_code("job", summary)


def test_a_job_that_did_nothing_says_so() -> None:
    text, summary = shown("Stopped", limits=Limits(max_seconds=-1.0), untuned=False)
    assert summary["first_step_seconds"] is None
    assert rows(text)["trials"] == "none"
    mentions(rows(text)["units used"], 0, 900, "0.0%")
    assert missing_names(rows(text)["wall time"], "training") == ["training"]


@pytest.mark.parametrize(("best_value", "resource"), [(False, 30), (True, 20)])
def test_the_best_so_far_is_said_with_its_units(best_value: bool, resource: int) -> None:
    def curve(assignment: Assignment, step: int) -> float:
        return rising(assignment, step) if step <= 20 else rising(assignment, 20) - 0.001 * step

    _, summary = shown(curve=curve, best_value=best_value)
    assert summary["best"]["resource"] == resource
    assert summary["untuned"]["value"] == (0.0 if best_value else -0.03)


def test_one_gang_is_one_gang() -> None:
    mentions(rows(shown(parallel=1)[0])["wall time"], "1 gang")


def test_rows_that_other_parts_of_a_job_fill_in() -> None:
    _, summary = shown()
    summary["reason"] = "the target value was reached"
    summary["probe"] = {"verdict": "one worker would be faster"}
    summary["checkpoints"] = {"kept": 5, "kept_bytes": 1_230_000, "written_bytes": 9_800_000}
    found = rows(printed(show_summary("job", "Completed", METRIC, summary, verbose=True)))
    assert found["reason"] == "the target value was reached"
    assert found["probe"] == "one worker would be faster"
    mentions(found["checkpoints"], "5 kept", "1.2 MB", "9.8 MB")


def test_the_first_distinct_errors_are_shown() -> None:
    _, summary = shown()
    summary["errors"] = [
        {"error": "max_depth [x] is -3\nTraceback ...", "trials": 7, "first": "job-001", "logs": "/logs"},
        {"error": "out of memory", "trials": 1, "first": "job-004", "logs": ""},
    ]
    found = rows(printed(show_summary("job", "Failed", METRIC, summary, verbose=True)))["trials"]
    mentions(found, "7 trials", "job-001", "max_depth [x] is -3", "/logs", "1 trial", "job-004", "out of memory")


# ---- what to do next


def block(text: str, start: str) -> str:
    """The lines from one that begins so, up to the next heading."""
    lines = text[text.index(start) :].splitlines()
    ends = (at for at, line in enumerate(lines) if line.endswith(":") and not line.startswith(" "))
    end = next(ends, len(lines))
    return "\n".join(lines[:end])


def test_the_best_configuration_can_be_pasted_into_a_job_file() -> None:
    _, summary = shown(static=TRAINER.hyperparameters)
    text = show_code("job", summary).plain
    pasted = block(text, "  hyperparameters:")
    found = load(f"trainer:\n  type: xgboost\n{pasted}")["trainer"]["hyperparameters"]
    best = summary["best"]["hyperparameters"]
    assert found == {**TRAINER.hyperparameters, **best, "num_round": 30}
    assert found["eta"] == best["eta"] != 0.5


def test_the_best_configuration_can_be_pasted_into_python() -> None:
    _, summary = shown(static=TRAINER.hyperparameters)
    text = show_code("job", summary).plain
    names: dict[str, Any] = {}
    exec(block(text, "from trainers import"), names)
    trainer = names["trainer"]
    assert isinstance(trainer, XGBoostTrainer)
    assert trainer.hyperparameters == {**TRAINER.hyperparameters, **summary["best"]["hyperparameters"], "num_round": 30}
    assert trainer.scaling == TRAINER.scaling
    assert trainer.units == 30


class OwnTrainer(XGBoostTrainer):
    """One of the user's own."""


def test_a_trainer_of_a_users_own_can_be_pasted_too() -> None:
    _, summary = shown()
    summary["best"]["trainer"] = OwnTrainer(hyperparameters={"eta": 0.1}).to_json()
    text = show_code("job", summary).plain
    names: dict[str, Any] = {}
    exec(block(text, "from trainers import"), names)
    assert type(names["trainer"]) is OwnTrainer
    assert "HyperparameterTuner.attach('job', allow_code=True).best_estimator().model()" in text


def test_the_length_stands_under_the_name_that_was_given() -> None:
    trainer = XGBoostTrainer(hyperparameters={"eval_metric": "auc", "n_estimators": 150})
    controller, _, _ = simulate()
    summary = summarize(controller, PLAN, lambda value: None, trainer)
    tuned = summary["best"]["trainer"]["hyperparameters"]
    assert tuned["n_estimators"] == 30
    assert "num_round" not in tuned


def test_how_the_model_is_loaded() -> None:
    _, summary = shown()
    text = show_code("job", summary).plain
    assert "HyperparameterTuner.attach('job').best_estimator().model()" in text
    assert summary["best"]["checkpoint"] in text
    assert "attach('job', store='sqlite:///x.db')" in show_code("job", summary, "sqlite:///x.db").plain
    for secret in ("postgresql://me:planted@host/db", "postgresql://me@host/db?password=planted"):
        text = show_code("job", summary, secret).plain
        assert "planted" not in text
        mentions(text, "WARMBAND_STORE")
        assert "HyperparameterTuner.attach('job').best_estimator().model()" in text
    assert (
        "attach('job', store='postgresql://me@host/db')" in show_code("job", summary, "postgresql://me@host/db").plain
    )
    assert "xgboost.Booster" in text
    assert "xgboost.Booster" not in show_code("job", shown(storage_path="s3://bucket")[1]).plain


# ---- in brief


def brief(summary: dict[str, Any], status: str = "Completed", width: int = 80, **options: Any) -> list[str]:
    """The lines of the summary that everybody gets."""
    console = Console(file=io.StringIO(), width=width, highlight=False)
    console.print(show_summary("job", status, METRIC, summary, **options))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert all(len(line) <= width for line in lines)
    assert len(lines) <= Brief.LINES
    return [line.rstrip() for line in lines]


def test_the_brief_summary_says_the_best_the_untuned_and_the_cost_first() -> None:
    _, summary = shown(limits=Limits(tariff=Tariff(per_worker_hour=36.0, currency="EUR")))
    lines, best = brief(summary), summary["best"]
    mentions(lines[0], "job", "Completed")
    mentions(lines[1], f"{best['value']:.5f}")
    mentions(lines[2], best["trial"], 30, f"eta={best['hyperparameters']['eta']:.4g}")
    mentions(" ".join(lines[3:5]), "un-tuned", f"{summary['untuned']['value']:.5f}", "better", "not known")
    mentions(lines[5], f"{sum(summary['worker_seconds'].values()):.1f} worker-seconds", "EUR")
    mentions(lines[-1], "hpo describe job")


@pytest.mark.parametrize("width", [20, 40, 80, 120, 320])
def test_the_brief_summary_has_eight_lines_whatever_there_is_to_say(width: int) -> None:
    _, summary = shown()
    for number in range(40):
        summary["best"]["hyperparameters"][f"colsample_by_{number}"] = 0.12345678901234567 + number
    summary["best"]["standard_error"] = 0.018
    summary["errors"] = [{"error": "max_depth " * 40, "trials": 7, "first": "job-001", "logs": "/logs" * 60}] * 3
    summary["overall_best"] = {"job": "parent", "trial": "parent-001", "value": 1.0, "resource": 3}
    summary["reason"] = "interrupted by Ctrl-C\nin the middle " * 9
    lines = brief(summary, "Stopped", width, resume="hpo resume job")
    mentions(lines[0], "job", "Stopped")
    assert any(line.startswith("best") for line in lines)
    assert any(line.startswith("cost") for line in lines)


def test_rows_are_wrapped_between_words_while_there_is_room() -> None:
    _, summary = shown()
    for number in range(3):
        summary["best"]["hyperparameters"][f"colsample_by_{number}"] = 0.125 + number
    summary["gain"] = {**summary["gain"], "verdict": "tuning made a gain of 0.9"}
    lines = brief(summary)
    mentions(lines[3], "colsample_by_2=2.125")
    assert not any(line.endswith("...") for line in lines)


def test_what_tuning_achieved_is_whole_where_the_trial_is_cut() -> None:
    _, summary = shown()
    for number in range(40):
        summary["best"]["hyperparameters"][f"colsample_by_{number}"] = 0.125 + number
    summary["gain"] = {**summary["gain"], "verdict": "tuning made a gain of 1234.56789, which is the news here"}
    lines = brief(summary)
    assert "1234.56789, which is the news here" in " ".join(" ".join(lines).split())
    assert any(line.endswith("...") for line in lines)


def test_a_job_that_was_stopped_says_in_the_first_line_how_it_is_resumed() -> None:
    _, summary = shown()
    summary["reason"] = "interrupted by Ctrl-C"
    mentions(brief(summary, "Stopped", resume="hpo resume job")[0], "Ctrl-C", "hpo resume job")
    assert "resume" not in " ".join(brief(summary, "Stopped"))
    assert brief(summary, "Stopped", 50, resume="hpo resume job")[1] == "hpo resume job"


def test_a_job_that_ended_before_it_had_found_anything_says_what_it_knows() -> None:
    mentions(brief({"probe": {}, "reason": "no storage"}, "Stopped")[0], "job", "Stopped", "no storage")
