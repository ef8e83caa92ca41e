"""A job with measurements of its communication."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.records import made_up


def measured(workers: int, share: float) -> dict:
    ranks = [str(rank) for rank in range(workers)]
    return {
        "steps": dict.fromkeys(ranks, 40),
        "bytes": dict.fromkeys(ranks, 2_500_000),
        "step_seconds": dict.fromkeys(ranks, 4.0),
        "waiting_seconds": {rank: 4.0 * share * 2 * (rank == "0") * workers / 2 for rank in ranks},
    }


PROFILE = {
    "trace": "s3://KEY:SECRET@bucket/job/job-003/profile.json.gz",
    "steps": 10,
    "step_seconds": 2.0,
    "waiting_seconds": 0.5,
    "operator_seconds": {"aten::addmm": 1.0, "gloo:all_reduce": 0.75},
    "collectives": ["gloo:all_reduce"],
}


@pytest.fixture(scope="module")
def data():
    plain = made_up()
    trials = [
        replace(trial, details={"communication": measured(2 + 2 * (trial.number % 2), 0.25 + 0.5 * (trial.number % 2))})
        for trial in plain.trials
    ]
    trials[3] = replace(trials[3], details={**trials[3].details, "profile": PROFILE})
    return replace(plain, trials=tuple(trials))
