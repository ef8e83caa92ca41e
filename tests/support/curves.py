"""Small tables of recorded curves, for the tests of simulated searches."""

from __future__ import annotations

import math
import random
from pathlib import Path

import pandas as pd

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter, ParameterRange
from hpo.record import JobRow, LedgerRow, ReportRow, Store, TrialRow
from hpo.simulation import Curves, RecordedCurve

RANGES: dict[str, ParameterRange] = {
    "eta": ContinuousParameter(0.001, 1, "Logarithmic"),
    "max_depth": IntegerParameter(1, 6),
    "booster": CategoricalParameter(["gbtree", "dart"]),
}
UNITS = 9


def recorded(count: int = 60, *, diverged: int = 0, units: int = UNITS) -> list[RecordedCurve]:
    """Curves that rise towards a height of their own; the first `diverged` of them diverge in unit 3."""
    stream, made = random.Random(7), []
    for number in range(count):
        eta, depth = 10 ** stream.uniform(-3, 0), stream.randint(1, 6)
        height = 1 - abs(math.log10(eta) + 1) / 3 - abs(depth - 4) / 20
        values = [height * (1 - 0.7**unit) for unit in range(1, units + 1)]
        if number < diverged:
            values[2:] = [math.nan] * (units - 2)
        made.append(
            RecordedCurve(
                configuration={"eta": eta, "max_depth": depth, "booster": stream.choice(["gbtree", "dart"])},
                values=values,
                seconds=[2.0 * unit for unit in range(1, units + 1)],
            )
        )
    return made


def table(count: int = 60, *, diverged: int = 0, units: int = UNITS) -> Curves:
    """The same as a table."""
    return Curves("made", RANGES, recorded(count, diverged=diverged, units=units))


def frame(curves: list[RecordedCurve]) -> pd.DataFrame:
    """Curves as the rows of a file."""
    return pd.DataFrame(
        [
            {"trial": number, "unit": unit, "seconds": seconds, "value": value, **curve.configuration}
            for number, curve in enumerate(curves)
            for unit, (value, seconds) in enumerate(zip(curve.values, curve.seconds, strict=True), 1)
        ]
    )


def write(curves: list[RecordedCurve], path: Path) -> Path:
    """Writes a CSV file of curves."""
    frame(curves).to_csv(path, index=False)
    return path


def keep(
    store: Store, name: str, curves: list[RecordedCurve], metric: str = "validation:auc", *, status: str = ""
) -> None:
    """Puts a job of these curves into a store; it ran on one worker, which started at once.

    Args:
        store: it.
        name: the job's.
        curves: a trial each.
        metric: what they are of.
        status: of all trials, where that is not what the curves say.
    """
    spec = {
        "hyperparameter_ranges": {key: each.to_json() for key, each in RANGES.items()},
        "objective_metric_name": metric,
        "objective_type": "Maximize",
        "objective_value": "last",
        "estimator": {"trainer": "XGBoostTrainer", "hyperparameters": {"eval_metric": "auc"}},
        "inputs": {},
    }
    store.create_job(JobRow(name=name, created_at=0.0, spec=spec))
    with store.writer(name) as writer:
        for number, curve in enumerate(curves):
            trial, values = f"{name}-{number:03d}", [value for value in curve.values if math.isfinite(value)]
            ended = status or ("Completed" if len(values) == len(curve.values) else "Diverged")
            units = min(len(values) + 1, max(1, len(curve.values)))
            writer.trial(
                TrialRow(
                    job=name,
                    trial_id=trial,
                    number=number,
                    status=ended,  # type: ignore[arg-type]
                    hyperparameters=dict(curve.configuration),
                    resource=len(values),
                    objective=values[-1] if values and ended == "Completed" else None,
                    failure_reason="ValueError: no luck.\nmore" if ended == "Failed" else "",
                )
            )
            writer.report(
                *(
                    ReportRow(job=name, trial_id=trial, step=unit, objective=value, at=0.0)
                    for unit, value in enumerate(values, 1)
                )
            )
            seconds = curve.seconds[units - 1]
            writer.ledger(
                LedgerRow(
                    job=name, trial_id=trial, gang="g", kind="training", worker_seconds=seconds, at=0.0, workers=1
                )
            )
        writer.job(status="Completed", ended_at=1.0)
