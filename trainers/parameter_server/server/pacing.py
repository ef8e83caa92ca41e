"""Pacing of workers by one server: pushes that make an update, and workers that have to wait."""

from __future__ import annotations

from collections import Counter

from trainers.parameter_server.settings import Settings


class Pacing:
    """Progress of one server's workers: a step is one push, a pass ends with a meeting of all workers.

    - "async": each push is an update, and nobody waits.
    - "bounded": likewise, but a worker that is more than `staleness_bound` steps ahead of the slowest waits for it
      (Ho et al., 2013).
    - "sync": the pushes of a round make one update, for which all who pushed wait. With backup workers the round is
      full without that many (Chen et al., 2016); a push that comes after the round it was meant for is dropped.

    A push of no rows is a step that changes nothing. A worker that has come to the meeting is out of the race: nobody
    waits for its steps, and a round is full without it.

    With several servers, each decides by itself. Nobody waits for ever all the same: at most `backup_workers` workers
    are late at a server at any one time, so if all who are still in the race wait somewhere, the server whose last
    round ended first has the pushes of all but that many, which is a full round.

    Args:
        settings: the mode, and what belongs to it.
    """

    def __init__(self, settings: Settings) -> None:
        self.updates = 0
        self.pushes = 0
        self.dropped = 0
        self.meetings = 0
        self.staleness: Counter[int] = Counter()
        self._mode = settings.mode
        self._bound = settings.staleness_bound
        self._backup = settings.backup_workers
        self._racing = set(range(settings.workers))
        self._steps = [0] * settings.workers
        self._pulled = [0] * settings.workers
        self._round: dict[int, int] = {}
        self._rounds = 0
        self._joined = [0] * settings.workers

    def push(self, rank: int, rows: int) -> tuple[int, ...]:
        """Takes a step of a worker.

        Args:
            rank: the worker.
            rows: that its gradient averages over; 0 if it has none.

        Returns:
            The workers whose last pushes make an update now, by rank; none, if there is no update now.
        """
        self._steps[rank] += 1
        if rows:
            self.pushes += 1
            self.staleness[self.updates - self._pulled[rank]] += 1
        if self._mode != "sync":
            return self._update([rank] if rows else [])
        if self._joined[rank] < self._rounds:
            self.dropped += 1 if rows else 0
            return ()
        self._round[rank] = rows
        return self._end_round()

    def meet(self, rank: int) -> tuple[int, ...]:
        """A worker is at the end of its pass; returns as `push` does, since a round may be full without it."""
        self._racing.discard(rank)
        made = self._end_round()
        if not self._racing:
            self.meetings += 1
            workers = len(self._steps)
            self._racing = set(range(workers))
            self._steps = [0] * workers
            for other in range(workers):
                self.pull(other)
        return made

    def pull(self, rank: int) -> None:
        """A worker has the parameters as they are now."""
        self._pulled[rank] = self.updates
        self._joined[rank] = self._rounds

    def missing(self, rank: int) -> list[int]:
        """Whom a worker has to wait for, by rank; nobody, if it may go on."""
        if rank not in self._racing:
            return sorted(self._racing)
        if self._mode == "sync" and rank in self._round:
            return sorted(self._racing - self._round.keys())
        if self._mode == "bounded":
            least = self._steps[rank] - self._bound
            return sorted(other for other in self._racing if self._steps[other] < least)
        return []

    def _end_round(self) -> tuple[int, ...]:
        if not self._round or len(self._round) < len(self._racing) - self._backup:
            return ()
        ranks = sorted(rank for rank, rows in self._round.items() if rows)
        self._round.clear()
        self._rounds += 1
        return self._update(ranks)

    def _update(self, ranks: list[int]) -> tuple[int, ...]:
        self.updates += 1 if ranks else 0
        return tuple(ranks)
