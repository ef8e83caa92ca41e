"""Jobs that trackers follow: a search on simulated gangs, with what a real one would tell them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any

from ray.train import ScalingConfig

from hpo import Callback
from hpo.observers import summarize
from hpo.observers.callbacks import Callbacks, JobEnd, JobStart
from hpo.search.controller import Controller
from hpo.search.observer import JobState
from hpo.search.trial import TrialRun
from hpo.strategies.hyperband import Cut, lay_out
from hpo.strategies.repeats import repeated
from tests.support.simulated import METRIC, Kept, drawn, simulate
from trainers import XGBoostTrainer
from trainers.gangs.messages import Assignment, Report

PLAN = lay_out(6, 1, 3)
STATIC = {"num_round": 3, "objective": "binary:logistic", "seed": None, "monotone": [1, 0]}
ODD = "loss % of  <b>train</b>/../"
"""The name of a metric that no tracker would choose."""

FAILING, DIVERGING = "job-001", "job-002"


class Told(Kept):
    """Tells callbacks, as a job's record does."""

    def __init__(self, callbacks: Callbacks) -> None:
        super().__init__()
        self.callbacks = callbacks
        self.reported: dict[str, list[Report]] = {}

    def trial(self, run: TrialRun) -> None:
        self.callbacks.trial(run)

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        if run.tuned:
            odd = [
                Report(
                    step=r.step, metrics={**r.metrics, ODD: math.nan if r.step == 2 else 1 / r.step, "huge": math.inf}
                )
                for r in reports
            ]
            self.reported.setdefault(run.id, []).extend(odd)
            self.callbacks.reports(run, odd)

    def rung(self, cut: Cut) -> None:
        self.callbacks.rung(cut)

    def progress(self, state: JobState) -> None:
        self.callbacks.progress(state)


def start(**changes: Any) -> JobStart:
    """Return the first event for trackers."""
    return JobStart(
        **{
            "name": "job",
            "metric": METRIC,
            "objective_type": "Maximize",
            "hyperparameters": STATIC,
            "ranges": {"eta": {"type": "Continuous", "min_value": 0.0, "max_value": 1.0, "scaling_type": "Auto"}},
            "plan": PLAN.to_json(),
            "seed": 7,
            "tags": [{"Key": "team", "Value": "growth"}],
        }
        | changes
    )


def curve(assignment: Assignment, step: int) -> float:
    """Rises towards eta; one trial fails at once, one diverges."""
    if assignment.trial_id == FAILING:
        raise ValueError("no such luck")
    if assignment.trial_id == DIVERGING:
        return math.nan
    return float(assignment.hyperparameters.get("eta", 0.0)) * (1 - 0.5**step)


def follow_repeats(*trackers: Callback) -> tuple[Controller, list[str]]:
    """Runs a job of six configurations, two trials each, to its end; its summary is the one that a real job has.

    Returns:
        The run, and what was printed.
    """
    said: list[str] = []
    plan = repeated(PLAN, 2)
    callbacks = Callbacks(trackers, said.append)
    callbacks.job_start(start(plan=plan.to_json()))
    controller, _, _ = simulate(
        plan=plan,
        curve=lambda assignment, step: curve(assignment, step) + drawn(f"{assignment.trial_id}/{step}") / 10,
        record=Told(callbacks),
        repeats=2,
    )
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=1), hyperparameters={"eval_metric": "auc"})
    summary = summarize(controller, plan, lambda value: value / 50, trainer)
    callbacks.job_end(JobEnd(name="job", status="Completed", reason="", summary=summary))
    return controller, said


def best_configuration(objectives: Mapping[str, float]) -> dict[str, float]:
    """The figures of the best configuration of that job, by the names that trackers have for them.

    Args:
        objectives: of its trials, by name, without those that failed or diverged.
    """
    configurations = [[f"job-{number:03d}", f"job-{number + 1:03d}"] for number in range(0, 12, 2)]
    whole = [[objectives[name] for name in names] for names in configurations if {*names} <= objectives.keys()]
    best = max(whole, key=fmean)
    return {"best": fmean(best), "best_standard_error": stdev(best) / 2**0.5, "best_trial_value": max(best)}


def follow(*trackers: Callback) -> tuple[Controller, dict[str, list[Report]], list[str]]:
    """Runs a job of six trials to its end.

    Returns:
        The run, what each trial reported, and what was printed.
    """
    said: list[str] = []
    callbacks = Callbacks(trackers, said.append)
    callbacks.job_start(start())
    controller, _, told = simulate(plan=PLAN, curve=curve, record=Told(callbacks))
    best = controller.best()
    assert best is not None
    summary = {
        "best": {
            "trial": best.id,
            "value": best.value,
            "resource": best.resource,
            "hyperparameters": best.hyperparameters,
        },
        "untuned": None,
        "worker_seconds": {kind.value: seconds for kind, seconds in controller.ledger.totals.items()},
        "wall_seconds": controller.seconds,
        "cost": {"currency": "EUR", "total": 0.25},
        "resource_used": controller.trained,
    }
    callbacks.job_end(JobEnd(name="job", status="Completed", reason="", summary=summary))
    return controller, told.reported, said
