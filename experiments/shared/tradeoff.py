"""Trade-off of score, wall time and cost: choices that no other beats, and the best within a limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One way to do it, and what it came to.

    Args:
        name: what it is called.
        workers: of a gang.
        score: the more the better; NaN where there is none.
        error: the standard error of the score; NaN where it is not known.
        seconds: of wall time.
        worker_seconds: billed.
    """

    name: str
    workers: int
    score: float
    error: float = math.nan
    seconds: float
    worker_seconds: float


@dataclass(frozen=True, kw_only=True)
class Advice:
    """From a limit on, take this choice.

    Args:
        limit: the least deadline in seconds, or budget in worker-seconds, that it keeps.
        choice: the one to take.
    """

    limit: float
    choice: Choice


def front(choices: Sequence[Choice]) -> list[Choice]:
    """The choices that no other beats: none is as good in score, wall time and cost and better in one of them.

    Returns:
        In the order given. A choice without a score is not among them.
    """
    scored = [choice for choice in choices if math.isfinite(choice.score)]
    return [one for one in scored if not any(_beats(other, one) for other in scored)]


def take(choices: Sequence[Choice], *, deadline: float = math.inf, budget: float = math.inf) -> Choice | None:
    """The choice to take within a deadline and a budget.

    Of those that keep both, scores that are less than one standard error below the best count as good as it: the
    least cost decides among them, then the least wall time.

    Args:
        choices: to choose from.
        deadline: in seconds of wall time.
        budget: in billed worker-seconds.

    Returns:
        None if none keeps both limits.
    """
    kept = [
        choice
        for choice in choices
        if math.isfinite(choice.score) and choice.seconds <= deadline and choice.worker_seconds <= budget
    ]
    if not kept:
        return None
    best = max(kept, key=lambda choice: choice.score)
    noise = best.error if math.isfinite(best.error) else 0.0
    as_good = [choice for choice in kept if choice.score >= best.score - noise]
    return min(as_good, key=lambda choice: (choice.worker_seconds, choice.seconds, -choice.score))


def by_deadline(choices: Sequence[Choice]) -> list[Advice]:
    """Which to take from which deadline on, in seconds."""
    return _advice(choices, lambda choice: choice.seconds, lambda limit: take(choices, deadline=limit))


def by_budget(choices: Sequence[Choice]) -> list[Advice]:
    """Which to take from which budget on, in worker-seconds."""
    return _advice(choices, lambda choice: choice.worker_seconds, lambda limit: take(choices, budget=limit))


def _advice(
    choices: Sequence[Choice], limited: Callable[[Choice], float], taken: Callable[[float], Choice | None]
) -> list[Advice]:
    advice: list[Advice] = []
    for limit in sorted({limited(choice) for choice in choices}):
        choice = taken(limit)
        if choice is not None and (not advice or advice[-1].choice is not choice):
            advice.append(Advice(limit=limit, choice=choice))
    return advice


def _beats(one: Choice, other: Choice) -> bool:
    mine = (one.score, -one.seconds, -one.worker_seconds)
    theirs = (other.score, -other.seconds, -other.worker_seconds)
    return mine != theirs and all(a >= b for a, b in zip(mine, theirs, strict=True))
