"""Jobs written into a store by hand, for the tests of exports."""

from __future__ import annotations

import math
import random
from typing import Any

from hpo import CategoricalParameter, ContinuousParameter, IntegerParameter
from hpo.record.store import JobRow, LedgerRow, ReportRow, Store, TrialRow

METRIC = "validation:auc"
STARTED = 1_760_000_000.0

RANGES = {
    "eta": ContinuousParameter(0.001, 1, "Logarithmic"),
    "decay": ContinuousParameter(0.1, 0.99, "ReverseLogarithmic"),
    "alpha": ContinuousParameter(0, 2),
    "max_depth": IntegerParameter(1, 10),
    "batch": IntegerParameter(1, 10_000, "Logarithmic"),
    "booster": CategoricalParameter(["gbtree", "dart", None]),
    "like one": CategoricalParameter([1, True, "1", 1.5]),
}


def spec(**changes: Any) -> dict[str, Any]:
    """Return the part of a job's specification that an export reads."""
    return {
        "strategy": "Hyperband",
        "objective_metric_name": METRIC,
        "objective_type": "Maximize",
        "objective_value": "last",
        "random_seed": 7,
        "tags": None,
        "max_jobs": 8,
        "max_parallel_jobs": 2,
        "max_runtime_in_seconds": None,
        "early_stopping_type": "Off",
        "strategy_request": None,
        "parameter_ranges": {},
        "estimator": {"trainer": "XGBoostTrainer", "hyperparameters": {"num_round": 9, "eta": 0.3}},
        "hyperparameter_ranges": {name: bounds.to_json() for name, bounds in RANGES.items()},
        **changes,
    }


def draw(number: int) -> dict[str, Any]:
    """A configuration."""
    chance = random.Random(number)
    return {
        "eta": chance.uniform(0.001, 1),
        "decay": chance.uniform(0.1, 0.99),
        "alpha": chance.uniform(0, 2),
        "max_depth": chance.randint(1, 10),
        "batch": chance.randint(1, 10_000),
        "booster": chance.choice(RANGES["booster"].values),
        "like one": chance.choice(RANGES["like one"].values),
    }


def record(store: Store, name: str, trials: int, steps: int = 9, *, ended: bool = True, **changes: Any) -> None:
    """A job of so many trials: every fourth is stopped half-way, and one each failed, diverged and still runs.

    Args:
        store: where to.
        name: of the job.
        trials: how many.
        steps: reports of a trial that runs to its end.
        ended: whether the job has; then nothing runs any more.
        **changes: to what the job was made with.
    """
    store.create_job(JobRow(name=name, created_at=STARTED, spec=spec(**changes)))
    with store.writer(name) as writer:
        for number in range(trials):
            _trial(writer, name, number, steps, "Completed" if ended else "Running")
        untuned = ReportRow(job=name, trial_id="untuned", step=1, objective=0.7, metrics={METRIC: 0.7}, at=STARTED)
        writer.trial(
            TrialRow(job=name, trial_id="untuned", number=-1, status="Completed", objective=0.7, ended_at=STARTED)
        )
        writer.report(untuned)
        writer.ledger(LedgerRow(job=name, gang="gang-0", kind="idle", worker_seconds=1 / 3, at=STARTED))
        if ended:
            writer.job(
                status="Completed",
                ended_at=STARTED + 99,
                summary={"worker_seconds": {"training": 6.0}, "cost": {"total": 0.5}},
            )


def _trial(writer: Any, name: str, number: int, steps: int, last: str) -> None:
    trial_id = f"{name}-{number:03d}"
    status = {1: "Failed", 2: "Diverged", 3: last}.get(number, "Stopped" if number % 4 == 0 else "Completed")
    reached = 0 if status == "Failed" else steps if status == "Completed" else max(1, steps // 2)
    values = [random.Random(number).random() * (1 - 0.8**step) for step in range(1, reached + 1)]
    if status == "Diverged":
        values[-1] = math.nan
    worth = bool(values) and status not in ("Failed", "Diverged")
    over = status != "Running"
    writer.trial(
        TrialRow(
            job=name,
            trial_id=trial_id,
            number=number,
            status=status,
            hyperparameters=draw(number),
            bracket=number % 2,
            resource=reached,
            objective=values[-1] if worth else None,
            best_objective=max(values) if worth else None,
            best_resource=reached if worth else None,
            checkpoint=f"/models/{trial_id}" if worth else "",
            failure_reason={"Failed": 'ValueError: <b>no, "such" luck</b>', "Diverged": "auc is nan"}.get(status, ""),
            traceback="Traceback\n  line, 7\n" if status == "Failed" else "",
            details={"loss": math.inf, "staleness": {"0": 3}} if number % 5 == 0 else {},
            started_at=STARTED + number,
            ended_at=STARTED + number + 10 if over else None,
        )
    )
    writer.report(
        *(
            ReportRow(
                job=name,
                trial_id=trial_id,
                step=step,
                objective=value if math.isfinite(value) else None,
                metrics={METRIC: value, "train:loss": -math.inf if step == 2 else 1 / step},
                at=STARTED + step,
            )
            for step, value in enumerate(values, 1)
        )
    )
    writer.ledger(
        LedgerRow(job=name, trial_id=trial_id, gang="gang-0", kind="training", worker_seconds=0.1 * number, at=STARTED)
    )
