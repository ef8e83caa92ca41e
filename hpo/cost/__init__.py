"""Prices, limits, the ledger of billed seconds, and throughput."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.cost.ledger import Entry as Entry, Kind as Kind, Ledger as Ledger
    from hpo.cost.limits import Budget as Budget, Limits as Limits
    from hpo.cost.prices import Prices as Prices, Tariff as Tariff
    from hpo.cost.throughput import (
        COLD_SECONDS as COLD_SECONDS,
        MOST_SECONDS as MOST_SECONDS,
        PROBE_UNITS as PROBE_UNITS,
        WARM_UP_UNITS as WARM_UP_UNITS,
        Countdown as Countdown,
        ManyWorkers as ManyWorkers,
        Pace as Pace,
        Probed as Probed,
        busy_gangs as busy_gangs,
        job_on_gangs as job_on_gangs,
    )

load_when_used(__name__)
