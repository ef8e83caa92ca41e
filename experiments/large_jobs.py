"""A Gaussian process that reads a part of a large job's results, beside trees that read all of them.

    python -m experiments.large_jobs [--seeds 4] [--trials 1000]

The process learns from at most 140 results, of a job of several hundred trials a part; trees learn from all. Trials run
to their end one after another, on functions of 6 to 10 dimensions with noise: recorded tables of a thousand
configurations are all but searched through by so many. Regret is that of the best configuration tried, without the
noise: 0 at the optimum, 1 at the median configuration.
"""

from __future__ import annotations

import itertools
import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray
from rich.console import Console
from scipy.stats import rankdata
from sklearn.ensemble import ExtraTreesRegressor

from experiments.shared.benchmark import markdown, table, write
from experiments.shared.published import Steps
from hpo import ContinuousParameter
from hpo.cli import errors_in_words
from hpo.ranges import ParameterRange, Scalar, decode
from hpo.simulation import mean_and_error
from hpo.strategies import RESOURCE, History, ModelSearch, by_number, run_all
from hpo.suggestions import Observation, Space, most_improving

NOISE = 0.05
"""Standard deviation of a value, in regret."""
LOOKED_AT = (100, 300, 600, 1000)
"""Trials after which regret is told."""

# ---- functions to minimise, over a unit cube


@dataclass(frozen=True, kw_only=True)
class Function:
    """A function of a unit cube.

    Args:
        sides: of the cube.
        value: at a point.
        least: its minimum.
    """

    sides: int
    value: Callable[[NDArray[Any]], float]
    least: float


def hartmann(x: NDArray[Any]) -> float:
    """Hartmann's function of 6 dimensions: Dixon and Szegő, "The Global Optimisation Problem" (1978)."""
    return -float(HARTMANN_C @ np.exp(-(HARTMANN_A * (x - HARTMANN_P) ** 2).sum(axis=1)))


def ackley(x: NDArray[Any]) -> float:
    """Ackley's function (1987) from -10 to 10, its minimum off the middle."""
    z = 20 * (x - 0.65)
    return float(-20 * np.exp(-0.2 * np.sqrt((z**2).mean())) - np.exp(np.cos(2 * np.pi * z).mean()) + 20 + np.e)


def rosenbrock(x: NDArray[Any]) -> float:
    """The logarithm of Rosenbrock's function from -2 to 2: each side's best value depends on the one before it."""
    z = 4 * x - 2
    return math.log1p(float((100 * (z[1:] - z[:-1] ** 2) ** 2 + (1 - z[:-1]) ** 2).sum()))


HARTMANN_C = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
HARTMANN_P = np.array(
    [
        [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886],
        [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
        [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650],
        [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381],
    ]
)
FUNCTIONS = {
    "Hartmann, 6 dimensions": Function(sides=6, value=hartmann, least=-3.32237),
    "Rosenbrock, 8 dimensions": Function(sides=8, value=rosenbrock, least=0.0),
    "Ackley, 10 dimensions": Function(sides=10, value=ackley, least=0.0),
}


# ---- trees

TREES, LEAF = 100, 3
"""Trees of a forest, and the fewest results that a leaf has: with one, a forest repeats the noise of its results."""


class Forest:
    """Extremely randomised trees that learned the ranks of all results over configuration and resource.

    Ranks are learned as -log(1 - rank), which tells the best apart; the spread over trees stands for what is not known.

    Source: Geurts, Ernst, Wehenkel, "Extremely Randomized Trees" (2006); as a model of a search as in Hutter, Hoos,
    Leyton-Brown, "Sequential Model-Based Optimization for General Algorithm Configuration" (2011), section 4.1.

    Args:
        space: of the configurations.
        observations: what was seen, at least one.
        max_resource: units of a trial that runs to the end.
        maximize: whether larger values are better.
        seed: of the trees.
    """

    def __init__(
        self, space: Space, observations: Sequence[Observation], *, max_resource: int, maximize: bool, seed: int
    ) -> None:
        self._space, self._seed = space, seed
        self.points: NDArray[Any] = np.array([space.point(each.hyperparameters) for each in observations])
        values = np.array([each.value if maximize else -each.value for each in observations])
        ranks = (rankdata(np.where(np.isfinite(values), values, -math.inf)) - 0.5) / len(values)
        self._targets = -np.log(1 - ranks)
        longest = math.log(max(2, max_resource))
        share = [min(1.0, math.log(max(1, each.resource)) / longest) for each in observations]
        self._features = np.column_stack([space.features(self.points), share])
        self._forest = self._fitted()

    @property
    def noise(self) -> float:
        """See `Predictor.noise`; the trees do not tell it from what they do not know."""
        return 0.0

    def believing(self, points: NDArray[Any]) -> None:
        """See `Predictor.believing`."""
        features = self._at_the_end(points)
        self._targets = np.concatenate([self._targets, self._forest.predict(features)])
        self._features = np.vstack([self._features, features])
        self._forest = self._fitted()

    def predict(self, points: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """See `Predictor.predict`."""
        features = self._at_the_end(points).astype(np.float32)
        told = np.array([tree.tree_.predict(features)[:, 0] for tree in self._forest.estimators_])
        return told.mean(axis=0), np.maximum(told.std(axis=0), 1e-5)

    def _at_the_end(self, points: NDArray[Any]) -> NDArray[Any]:
        return np.column_stack([self._space.features(points), np.ones(len(points))])

    def _fitted(self) -> ExtraTreesRegressor:
        forest = ExtraTreesRegressor(TREES, min_samples_leaf=LEAF, random_state=self._seed)
        return forest.fit(self._features, self._targets)


class TreeSearch(ModelSearch):
    """Suggests what trees expect most of, in place of a Gaussian process; all else is the same."""

    def compute(self, number: int) -> dict[str, Scalar]:
        """See `ModelSearch.compute`."""
        own, unseen = self._history.read(number)
        seen = [*own, *self._earlier]
        if not any(math.isfinite(each.value) for each in seen):
            return decode(self._ranges, self._random.drawn(number))
        sequence = np.random.SeedSequence(self._seed, spawn_key=(number, 1))
        longest, maximize = self._plan.max_resource, self.mode == "max"
        seed = int(sequence.generate_state(1)[0])
        forest = Forest(self._space, seen, max_resource=longest, maximize=maximize, seed=seed)
        stream = np.random.RandomState(np.random.MT19937(sequence))
        return most_improving(self._space, forest, begun=unseen, stream=stream).hyperparameters


# ---- searches

SEARCHES: dict[str, type[ModelSearch]] = {"Gaussian process": ModelSearch, "Trees": TreeSearch}


def on_function(name: str, arm: str, trials: int, seed: int) -> dict[str, Any]:
    """One search: regret after each of `LOOKED_AT` trials, and the processor seconds of a suggestion.

    Args:
        name: of the function.
        arm: of `SEARCHES`.
        trials: of the job, one after another.
        seed: of the search and of the noise.
    """
    function = FUNCTIONS[name]
    ranges: dict[str, ParameterRange] = {f"x{side}": ContinuousParameter(0, 1) for side in range(function.sides)}
    median = statistics.median(map(function.value, np.random.default_rng(0).random((2001, function.sides))))
    noise = np.random.default_rng(seed).normal(0, NOISE, trials)
    plan = run_all(trials, 1)
    history = History(plan, by_number(plan, 1))
    search = SEARCHES[arm](ranges, plan, metric="value", mode="min", seed=seed, history=history, ahead=False)
    took, regrets, best = [], [], math.inf
    for number in range(trials):
        trial, began = f"trial-{number}", time.process_time()
        suggested = search.suggest(trial)
        took.append(time.process_time() - began)
        assert suggested is not None, "nothing is waited for"
        tried: dict[str, Scalar] = decode(ranges, suggested)
        search.begun(trial, tried)
        point = np.array([tried[side] for side in ranges], dtype=float)
        regret = (function.value(point) - function.least) / (median - function.least)
        result = {RESOURCE: 1, "value": regret + noise[number]}
        search.on_trial_result(trial, result)
        search.on_trial_complete(trial, result)
        best = min(best, regret)
        if number + 1 in LOOKED_AT:
            regrets.append(best)
    return {"regrets": regrets, "seconds": statistics.fmean(took[-trials // 4 :])}


# ---- what came out


def rows(of: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[tuple[str, ...]]:
    """A row a model: regret with its standard error over the seeds, and seconds a suggestion."""
    made = []
    for arm, runs in of.items():
        cells = []
        for then in zip(*(run["regrets"] for run in runs), strict=True):
            mean, error = mean_and_error(list(then))
            cells.append(f"{mean:.3f} ± {error:.3f}")
        made.append((arm, *cells, f"{statistics.fmean(run['seconds'] for run in runs):.3f}"))
    return made


def columns(trials: int) -> tuple[str, ...]:
    """Of `rows`."""
    return (
        "model",
        *(f"regret after {place:,} trials" for place in LOOKED_AT if place <= trials),
        "seconds a suggestion",
    )


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The table of docs/guides/model.md from result.json."""
    lines = [(name, *row) for name, of in result["functions"].items() for row in rows(of)]
    return {"functions": markdown(("function", *columns(result["trials"])), lines)}


def main(
    seeds: Annotated[int, typer.Option(min=2, help="How many seeds, from 0.")] = 4,
    trials: Annotated[int, typer.Option(min=100, help="Of a job.")] = 1000,
    out: Annotated[Path, typer.Option(help="Folder for result.json and steps.")] = Path("results/large-jobs"),
) -> None:
    """A Gaussian process of a part of the results, and trees of all of them, in large jobs."""
    console = Console(highlight=False)
    result: dict[str, Any] = {"simulated": True, "seeds": list(range(seeds)), "trials": trials, "functions": {}}
    with Steps(out, partial(console.print, markup=False)) as steps:
        for name in FUNCTIONS:
            of: dict[str, list[dict[str, Any]]] = {arm: [] for arm in SEARCHES}
            for seed, arm in itertools.product(range(seeds), SEARCHES):
                step = f"{name}-{arm}-{seed}".replace(" ", "-").replace(",", "")
                work = partial(on_function, name, arm, trials, seed)
                of[arm].append(steps.do(step, {"trials": trials}, work))
            result["functions"][name] = of
            console.print(table(name, columns(trials), rows(of)))
    console.print(f"written to {write(out, result)}", soft_wrap=True)


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
