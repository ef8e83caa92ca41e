"""What is trained in a comparison: twins, shuffled rows, and a score for what diverged."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.convergence.cases import Outcome, image_case, scored, xgboost_case
from experiments.convergence.causes import Cause, changes
from experiments.shared.published import Options


@pytest.mark.parametrize(
    ("given", "exact"),
    [
        ({}, True),
        ({"tree_method": "hist", "max_bin": 64}, True),
        ({"tree_method": "approx"}, True),
        ({"booster": "dart"}, False),
    ],
)
def test_exact_trees_are_compared_where_there_are_trees(given: dict[str, Any], exact: bool, tmp_path: Path) -> None:
    case = xgboost_case(Options(quick=True, out=tmp_path), 2)
    trees = replace(case, trainer=case.trainer.with_hyperparameters(given))
    found = trees.exact()
    assert (found is not None) == exact
    if found is not None:
        assert found.hyperparameters["tree_method"] == "exact"
        assert "max_bin" not in found.hyperparameters


def test_shuffled_rows_are_the_same_rows_and_whole_ones_are_every_workers(tmp_path: Path) -> None:
    case = image_case(Options(quick=True, out=tmp_path), 3, real=False)
    by_cause = {change.causes[0]: change for change in changes(case.run)[0]}
    shuffled = case.rows(by_cause[Cause.SHARDS], 5)
    before, after = case.channels["train"].read_whole(), shuffled["train"].read_whole()
    assert not np.array_equal(before.labels, after.labels)
    assert np.array_equal(np.sort(before.labels), np.sort(after.labels))
    assert np.isclose(before.features.sum(), after.features.sum())
    whole = case.rows(by_cause[Cause.METRIC], 5)
    for rank in range(4):
        assert np.array_equal(whole["validation"].read(rank, 4).labels, case.channels["validation"].read_whole().labels)
    assert whole["train"] is case.channels["train"]


def test_what_diverged_counts_as_the_worst_that_was_seen() -> None:
    outcomes = [Outcome(curve=[0.5, 0.9]), Outcome(diverged=True), Outcome(curve=[0.3, float("nan")])]
    assert scored(outcomes, 0.1).values == (0.9, 0.1, 0.1)
