"""Limits of a job's wall time and cost, and the work that still fits into them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from hpo.cost.ledger import Ledger
from hpo.cost.prices import Tariff
from hpo.text import money


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """A job's limits.

    Args:
        max_seconds: from its start; with `max_wait`, seconds with a gang alone.
        max_wait: from its start, waiting for a gang included. Without it, a job gives up waiting for room sooner.
        max_cost: of all its billed worker-seconds.
        tariff: the price of these; None without prices.
    """

    max_seconds: float = math.inf
    max_wait: float = math.inf
    max_cost: float = math.inf
    tariff: Tariff | None = None

    @property
    def max_worker_seconds(self) -> float:
        """How many worker-seconds `max_cost` pays for."""
        return self.tariff.worker_seconds(self.max_cost) if self.tariff else math.inf

    @property
    def patient(self) -> bool:
        """Whether it waits for room until a limit of its own."""
        return not math.isinf(self.max_wait)

    def reached(self, seconds: float, worker_seconds: float, waited: float = 0.0) -> str:
        """Which limit is reached, with what was measured; empty if none is.

        Args:
            seconds: since the job's start.
            worker_seconds: billed so far.
            waited: how many of them were without a gang.
        """
        if seconds >= self.max_wait:
            return f"max_wait reached: {seconds:.1f} s of {self.max_wait:g} s, {waited:.1f} s of them without a gang"
        ran = self._ran(seconds, waited)
        if ran >= self.max_seconds:
            return f"max_runtime_in_seconds reached: {ran:.1f} s of {self.max_seconds:g} s"
        if self.tariff and worker_seconds >= self.max_worker_seconds:
            return f"max_cost reached: {self.tariff.text(worker_seconds)} of {self._most}"
        return ""

    def shares(self, seconds: float, worker_seconds: float, waited: float = 0.0) -> dict[str, tuple[float, float]]:
        """The share of each limit of money and of running that is used, and the limit, by its name.

        Args:
            seconds: as for `reached`.
            worker_seconds: likewise.
            waited: likewise.
        """
        used = {}
        if not math.isinf(self.max_seconds):
            used["max_runtime_in_seconds"] = (self._ran(seconds, waited) / self.max_seconds, self.max_seconds)
        if not math.isinf(self.max_worker_seconds):
            used["max_cost"] = (worker_seconds / self.max_worker_seconds, self.max_cost)
        return used

    def _ran(self, seconds: float, waited: float) -> float:
        return seconds - waited if self.patient else seconds

    def short_of(self, workers: int, start_worker_seconds: float, left: float) -> str:
        """The reason for the end of a job that cannot go on without another gang."""
        assert self.tariff is not None, "nothing else is short"
        return (
            f"max_cost reached: {self.tariff.text(left)} of {self._most} are left, and the start of a gang of "
            f"{workers} workers costs {self.tariff.text(start_worker_seconds)}"
        )

    @property
    def _most(self) -> str:
        return money(self.max_cost, self.tariff.currency if self.tariff else "")


class Budget:
    """Follows what a job spends, and says which gangs it can still pay to start: pure, given its ledger.

    Args:
        limits: of the job.
        ledger: of the job.
    """

    def __init__(self, limits: Limits, ledger: Ledger) -> None:
        self._limits = limits
        self._ledger = ledger
        self._start_seconds: float | None = None

    def started(self, seconds: float) -> None:
        """Notes how long a gang's start took."""
        self._start_seconds = seconds

    def reached(self, seconds: float) -> str:
        """Which limit is reached so many seconds after the start; empty if none is."""
        return self._limits.reached(seconds, self._spent, max(0.0, seconds - self._ledger.gang_seconds))

    def pays_for(self, sizes: Mapping[int, int], there: Counter[int], starting: int) -> dict[int, int]:
        """The gangs that are wanted, without those whose start costs more than what is left.

        A start is taken to cost as much as the last one. Before the first is known, only one gang is started.

        Args:
            sizes: how many gangs of each size could be busy, the most urgent size first.
            there: how many gangs of each size are up.
            starting: how many more are on their way.
        """
        if math.isinf(self._limits.max_worker_seconds):
            return dict(sizes)
        if self._start_seconds is None:
            first = {workers: 1 for workers, count in list(sizes.items())[:1] if count and not starting}
            return {workers: min(count, there[workers] + first.get(workers, 0)) for workers, count in sizes.items()}
        left = self._left - starting * self._start_seconds * max(sizes, default=0)
        paid = {}
        for workers, count in sizes.items():
            cost = self._start_seconds * workers
            more = max(0, count - there[workers])
            new = int(min(more, max(0.0, left / cost))) if cost else more
            left -= new * cost
            paid[workers] = min(count, there[workers]) + new
        return paid

    def short_of(self, workers: int) -> str:
        """The reason for the end of a job that cannot go on without a gang of so many workers."""
        return self._limits.short_of(workers, (self._start_seconds or 0.0) * workers, max(0.0, self._left))

    @property
    def _spent(self) -> float:
        return self._ledger.total + self._ledger.open

    @property
    def _left(self) -> float:
        return self._limits.max_worker_seconds - self._spent
