"""Verdicts on the convergence of made-up searches."""

from __future__ import annotations

import random
from collections.abc import Callable

from hpo import CategoricalParameter, ContinuousParameter
from hpo.ranges import ParameterRange
from hpo.ranking import Ranking
from hpo.suggestions import Converged, Convergence

RANGES: dict[str, ParameterRange] = {
    "x": ContinuousParameter(0, 1),
    "kind": CategoricalParameter(["a", "b"]),
}
Height = Callable[[float], float]


def judged(
    height: Height, *, trials: int = 60, maximize: bool = True, scale: float = 1.0, order: int = 0
) -> list[Converged | None]:
    """The verdict after each trial, of random ones; told of in another order, the verdicts come at the end."""
    stream = random.Random(3)
    convergence = Convergence(RANGES, max_resource=9, ranking=Ranking(maximize=maximize))
    tried = [{"x": stream.random(), "kind": stream.choice("ab")} for _ in range(trials)]
    told = list(range(trials))
    random.Random(order).shuffle(told) if order else None
    for number in told:
        value = height(float(tried[number]["x"])) * (scale if maximize else -scale)
        convergence.begun(number, tried[number])
        convergence.reached(number, 3, value / 2)
        convergence.ended(number, 9, value)
    return [convergence.judge(number + 1) for number in range(trials)]


def first(verdicts: list[Converged | None]) -> int | None:
    return next((number for number, found in enumerate(verdicts) if found), None)
