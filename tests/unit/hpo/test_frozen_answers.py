"""The answers of eight jobs are those that were kept: no change of the code changes a trial, a rung or a winner.

Where the libraries and the processor are those that the file was made with, values and models are the same to the last
byte; elsewhere values are to 1e-6, and a warning says so. Where a change of the answers is meant, write the file again:
`python -m tests.support.frozen tests/support/frozen_answers.json`.
"""

from __future__ import annotations

import copy
from typing import Any

from tests.support.frozen import JOBS, lines, nearly
from tests.support.hpo.frozen_answers import FROZEN


def test_the_jobs_hold_what_they_are_there_for() -> None:
    """Trials that were stopped, that failed at once and at a later rung, and models of nearly all."""
    assert FROZEN["jobs"].keys() == JOBS.keys()
    trials = [trial for job in FROZEN["jobs"].values() for trial in job["trials"]]
    assert {trial["status"] for trial in trials} == {"Completed", "Stopped", "Failed"}
    assert {trial["resource"] > 0 for trial in trials if trial["status"] == "Failed"} == {False, True}
    for trial in trials:
        assert len(trial["values"]) == trial["resource"]
        assert bool(trial["sha256"]) == (trial["resource"] > 0)


def changed(key: str, value: Any) -> dict[str, Any]:
    """A frozen answer with another value in its first trial."""
    found = copy.deepcopy(FROZEN["jobs"]["pytorch-resumed"])
    found["trials"][0][key] = value
    return found


def test_elsewhere_values_count_to_a_millionth_and_models_do_not() -> None:
    frozen = FROZEN["jobs"]["pytorch-resumed"]
    first = frozen["trials"][0]
    for same in (
        changed("sha256", "0"),
        changed("values", [value * (1 + 1e-8) for value in first["values"]]),
        changed("hyperparameters", {**first["hyperparameters"], "lr": first["hyperparameters"]["lr"] * (1 + 1e-15)}),
    ):
        assert lines(same) != lines(frozen)
        assert lines(nearly(same, frozen)) == lines(frozen)
    for other in (
        changed("values", [value * (1 + 1e-5) for value in first["values"]]),
        changed("values", first["values"][:-1]),
        changed("hyperparameters", {**first["hyperparameters"], "lr": first["hyperparameters"]["lr"] * 1.01}),
        changed("status", "Failed"),
        changed("resource", 0),
        {**frozen, "winner": -1},
        {**frozen, "trials": frozen["trials"][:-1]},
    ):
        assert lines(nearly(other, frozen)) != lines(frozen)
