"""A job whose later trials a model suggested."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hpo.report import JobData


def modelled(data: JobData, first: int = 6, **spec: Any) -> JobData:
    """A job whose trials behind the first ones were suggested by a model."""
    random = {"by": "random"}
    model = {"by": "model", "results": 9, "score": 0.2, "deviation": 0.3, "spread": 0.4}
    believed = {**model, "middle": 0.7, "low": 0.6, "high": 0.8}
    trials = [replace(each, believed=random if each.number < first else believed) for each in data.trials]
    return replace(data, trials=tuple(trials), job=replace(data.job, spec={**data.job.spec, **spec}))
