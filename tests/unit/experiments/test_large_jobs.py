"""Models of large jobs: the functions, the trees, and the tables that the pages are given."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.large_jobs import FUNCTIONS, HARTMANN_P, Forest, page_tables
from hpo import ContinuousParameter
from hpo.suggestions import Observation, Space


def test_the_functions_have_the_minima_that_they_are_said_to_have() -> None:
    best = np.array([0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573])
    at = {"Hartmann, 6 dimensions": best, "Rosenbrock, 8 dimensions": np.full(8, 0.75), "Ackley, 10 dimensions": [0.65]}
    assert HARTMANN_P.shape == (4, 6)
    for name, function in FUNCTIONS.items():
        point = np.resize(np.asarray(at[name], dtype=float), function.sides)
        assert function.value(point) == pytest.approx(function.least, abs=1e-4)
        assert function.value(point + 0.01) > function.value(point)


def test_trees_learn_of_results_that_are_to_come_and_rank_what_is_lost_last() -> None:
    space = Space({"x": ContinuousParameter(0, 1)})
    seen = [
        Observation(hyperparameters={"x": place / 40}, resource=9, value=place / 40 if place < 30 else float("nan"))
        for place in range(41)
    ]
    forest = Forest(space, seen, max_resource=9, maximize=True, seed=3)
    mean, deviation = forest.predict(np.array([[0.1], [0.7], [0.95]]))
    assert mean[1] > mean[0] > mean[2]
    assert (deviation > 0).all()
    again = Forest(space, seen, max_resource=9, maximize=True, seed=3)
    assert (again.predict(np.array([[0.5]]))[0] == forest.predict(np.array([[0.5]]))[0]).all()
    forest.believing(np.array([[0.5]]))
    assert len(forest.points) == 41


def test_a_page_is_given_a_row_a_model_and_function() -> None:
    runs = [{"regrets": [0.5, 0.25], "seconds": 0.1}, {"regrets": [0.25, 0.25], "seconds": 0.3}]
    made = page_tables({"trials": 300, "functions": {"Hartmann": {"Trees": runs}}})["functions"].splitlines()
    assert made[0] == "| function | model | regret after 100 trials | regret after 300 trials | seconds a suggestion |"
    assert made[2] == "| Hartmann | Trees | 0.375 ± 0.125 | 0.250 ± 0.000 | 0.200 |"
