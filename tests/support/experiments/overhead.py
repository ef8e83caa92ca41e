"""Made-up measurements of the overhead."""

from __future__ import annotations

from experiments.baselines.optuna_studies import PRUNERS, STORAGES, Block, Study
from experiments.overhead import Measured
from experiments.workloads.empty_searches import (
    PLANS,
    REPORTS,
    Batches,
    Searched,
)


def searched(plan: str, trials: int, durable: float) -> Searched:
    return Searched(
        plan=plan,
        trials=trials,
        reports=trials * REPORTS,
        scheduler=1.0,
        loop=10.0,
        durable=durable,
        durable_wall=2 * durable,
        memory=1_000_000 + 2_000 * trials,
        peak=200_000_000,
    )


MEASURED = Measured(
    searches=[searched(plan, trials, 30.0) for plan in PLANS for trials in (10, 100, 1000)],
    batches=Batches(milliseconds=[1.0] * 90 + [2.0] * 10, alone=300.0, alone_wall=450.0),
    optuna=[
        Study(
            plan=plan,
            storage=storage,
            blocks=[
                Block(trials=10, reports=500, asking=200.0, all=1000.0 * number, wall=2000.0 * number),
                Block(trials=25, reports=700, asking=400.0, all=5000.0, wall=7000.0),
            ],
        )
        for plan in PRUNERS
        for number, storage in enumerate(STORAGES, 1)
    ],
)
