"""A timeline of gangs from the ledger, and billed seconds up to any moment."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from hpo.record import LedgerRow
from hpo.report.data import JobData


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A gang's time of one kind; seconds since the job was created.

    Args:
        gang: its name.
        workers: how many it has.
        trial_id: the trial it served; empty for none.
        kind: the kind of billed seconds.
        start: when it began.
        end: when it ended.
        resource: the units that the trial had reached when the assignment ended; 0 where it is no part of one, or
            without a result.
    """

    gang: str
    workers: int
    trial_id: str
    kind: str
    start: float
    end: float
    resource: int = 0

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end - self.start

    @property
    def worker_seconds(self) -> float:
        """The worker-seconds billed for it."""
        return self.seconds * self.workers


def spans(data: JobData) -> list[Span]:
    """Every entry of the ledger whose gang's size is known, as time; gangs by when they began, each in order.

    A gang's entries follow each other without gaps. In older records, those that were booked together have one time.
    """
    resource_at = _resources(data)
    lanes: list[list[Span]] = []
    for gang, entries in by_gang(data.ledger).items():
        workers = workers_of(entries)
        if not workers:
            continue
        line = []
        for at, together in groupby(entries, key=lambda entry: entry.at):
            end, ordered = at - data.job.created_at, list(together)
            for entry in reversed(ordered):
                start = end - entry.worker_seconds / workers
                line.append(
                    Span(
                        gang=gang,
                        workers=workers,
                        trial_id=entry.trial_id,
                        kind=entry.kind,
                        start=start,
                        end=end,
                        resource=resource_at(entry.trial_id, at),
                    )
                )
                end = start
        lanes.append(sorted(line, key=lambda span: (span.start, span.end)))
    lanes.sort(key=lambda line: line[0].start)
    return [span for line in lanes for span in line]


def by_gang(ledger: Iterable[LedgerRow]) -> dict[str, list[LedgerRow]]:
    """The ledger's entries of each gang, by time."""
    gangs: dict[str, list[LedgerRow]] = defaultdict(list)
    for entry in ledger:
        gangs[entry.gang].append(entry)
    return {gang: sorted(entries, key=lambda entry: (entry.at, entry.id)) for gang, entries in gangs.items()}


def workers_of(entries: Sequence[LedgerRow]) -> int:
    """The number of a gang's workers, from its entries by time; 0 if it cannot be known.

    For older records, which do not have it: a gang's entries have no gaps, so it is the seconds billed after the first
    booking over the time since then.
    """
    first, last = entries[0].at, entries[-1].at
    if entries[0].workers or last <= first:
        return entries[0].workers
    return round(sum(entry.worker_seconds for entry in entries if entry.at > first) / (last - first))


def billed_until(data: JobData) -> Callable[[float], float]:
    """The bill at a moment, in unix seconds, while gangs were held; entries of unknown gangs as they came.

    It is a line from moment to moment, and ends at the ledger's total.
    """
    line = spans(data)
    known = {span.gang for span in line}
    moments = [edge for span in line for edge in ((span.start, span.workers), (span.end, -span.workers))]
    jumps = sorted((entry.at, entry.worker_seconds) for entry in data.ledger if entry.gang not in known)
    moments.sort()
    at = np.array([moment for moment, _ in moments])
    rates = np.cumsum([workers for _, workers in moments])
    total = np.concatenate([[0.0], np.cumsum(rates[:-1] * np.diff(at))]) if len(at) else np.zeros(0)
    later, sums = [moment for moment, _ in jumps], np.concatenate([[0.0], np.cumsum([each for _, each in jumps])])

    def billed(when: float) -> float:
        seconds = float(np.interp(when - data.job.created_at, at, total)) if len(at) else 0.0
        return seconds + float(sums[bisect_left(later, when)])

    return billed


def _resources(data: JobData) -> Callable[[str, float], int]:
    """The units that a trial had reached by the assignment of which an entry was booked at a moment."""
    ends = _ends(data.ledger)
    batches = {
        trial: [(at, max(report.step for report in rows)) for at, rows in groupby(reports, key=lambda each: each.at)]
        for trial, reports in data.reports.items()
    }

    def resource(trial: str, at: float) -> int:
        steps, served = batches.get(trial, []), ends.get(trial, [])
        if not steps or not served:
            return 0
        place = bisect_left(served, at)
        # Reports are recorded just after their assignment was booked, and before the next one is.
        batch = bisect_left(steps, (served[place], 0))
        late = batch == len(steps) or (place + 1 < len(served) and steps[batch][0] >= served[place + 1])
        return 0 if late else steps[batch][1]

    return resource


def _ends(ledger: Iterable[LedgerRow]) -> dict[str, list[float]]:
    """When each trial's assignments ended. Their entries come in the order of the kinds."""
    ends: dict[str, list[float]] = defaultdict(list)
    for entries in by_gang(ledger).values():
        last = None
        for entry in entries:
            goes_on = last is not None and last.trial_id == entry.trial_id and _rank(last) < _rank(entry)
            if entry.trial_id and goes_on:
                ends[entry.trial_id][-1] = entry.at
            elif entry.trial_id:
                ends[entry.trial_id].append(entry.at)
            last = entry
    return {trial: sorted(times) for trial, times in ends.items()}


def _rank(entry: LedgerRow) -> int:
    return ("starting", "training", "checkpointing", "idle").index(entry.kind)
