"""Two measurements of a machine's load, and what they say of it."""

from __future__ import annotations

from hpo.forecasts.busy import Busy, Usage, busy_between

ME, WORKER = (1, 0.5), (2, 3.5)


def busy(by_all: float, by_job: float, *, seconds: float = 10.0, cores: int = 2, wanted: int = 2) -> Busy | None:
    before = Usage(at=100.0, by_all=5000.0, by_job={ME: (7.0, 1.0)})
    after = Usage(at=100.0 + seconds, by_all=5000.0 + by_all, by_job={ME: (7.0 + by_job, 1.0)})
    return busy_between(before, after, cores=cores, wanted=wanted)
