"""Simulated jobs whose trials share gangs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hpo.strategies.hyperband import Plan, lay_out, run_all
from hpo.strategies.median_rule import with_median_rule
from tests.support.broken_off import Service, Spoiling
from tests.support.simulated_schedules import EFFECTS, RANGES, Counted, Models, Schedules

BROKEN = [lay_out(17, 1, 9), run_all(12, 8), with_median_rule(run_all(12, 9))]


def service(
    plan: Plan, parallel: int, *, exact: bool, luck: float = 0.0, spoil: int | None = None, **options: Any
) -> Service:
    models = Models(EFFECTS, luck, exact=exact)
    more: dict[str, Any] = {"models": models, "times": Counter(), "spoilt": set(), "seed": spoil}
    return Service(
        plan=plan,
        parallel=parallel,
        searcher=Schedules,
        curve=models,
        gangs=type("CountedAlready", (Counted,) if spoil is None else (Counted, Spoiling), more),
        options={"ranges": RANGES, "effects": EFFECTS, "exact_from": lambda hyperparameters: exact, **options},
    )
