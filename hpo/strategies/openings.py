"""When results open to suggestions: the number of the first one that reads each, known before the start; pure."""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from hpo.strategies.hyperband import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Openings:
    """The number of the first suggestion that reads each result of a plan.

    Args:
        firsts: by trial, of its first rung; of all that it comes to, where trials are stopped each by itself.
        rungs: by bracket, of its rungs behind the first, of all trials of it at once.
    """

    firsts: Sequence[int]
    rungs: Sequence[Sequence[int]]

    def reads(self, fewest: int) -> int:
        """The number of the first suggestion that reads so many trials, 1 or more; behind the last where none does."""
        return sorted(self.firsts)[fewest - 1] if fewest <= len(self.firsts) else len(self.firsts)


def at_once(plan: Plan) -> Openings:
    """Every result opens to every suggestion."""
    return Openings(firsts=[0] * plan.trials, rungs=[[0] * (len(bracket.rungs) - 1) for bracket in plan.brackets])


def by_number(plan: Plan, lag: int) -> Openings:
    """A trial's first rung opens `lag` trials behind it, and the further rungs of its bracket a lag each behind that.

    While a search with up to `lag` trials at once comes from one suggestion to the next but one lag, what that one
    reads is mostly trained already.

    Args:
        plan: the brackets.
        lag: trials between a suggestion and the last whose first rung it reads; 1 or more.
    """
    rungs, behind = [], 0
    for bracket in plan.brackets:
        behind += bracket.sizes[0]
        rungs.append([behind + rung * lag for rung in range(1, len(bracket.rungs))])
    return Openings(firsts=range(lag, lag + plan.trials), rungs=rungs)


def by_clock(plan: Plan, parallel: int, slack: float) -> Openings:
    """A result opens to the first suggestion that is due once it is there, on a clock on which all units are as long.

    So many trials at once train as a synchronous Hyperband has them: first what goes on in the first bracket, and new
    trials where nothing else is to be done. On gangs as fast as one another no suggestion waits, and each reads nearly
    all that there is.

    Args:
        plan: the brackets.
        parallel: trials at once.
        slack: how much longer than on that clock a result may take before it is waited for, 1.5 for half as long again.
    """
    return _Clock(plan, parallel, slack).openings()


class _Clock:
    """One run of a plan on so many gangs; see `by_clock`."""

    def __init__(self, plan: Plan, parallel: int, slack: float) -> None:
        self._plan, self._slack = plan, slack
        self._now, self._free = 0.0, parallel
        self._running: list[tuple[float, int, int]] = []
        """The time at which each piece ends, its bracket and its rung; a heap."""
        self._left = [bracket.sizes[0] for bracket in plan.brackets]
        """Pieces of each bracket that have yet to come to the rung that it trains to."""
        self._going_on: list[tuple[int, int, int]] = []
        """Brackets with pieces that wait for a gang, the rung that they train to and how many they are; a heap."""
        self._due: list[float] = []
        """When each suggestion is asked for."""
        self._firsts: list[float] = []
        """When each trial's first rung is there at the latest; so `_rungs`, by bracket."""
        self._rungs: list[list[float]] = [[0.0] * (len(bracket.rungs) - 1) for bracket in plan.brackets]

    def openings(self) -> Openings:
        """What it comes to."""
        trials = (index for index, bracket in enumerate(self._plan.brackets) for _ in range(bracket.sizes[0]))
        new = next(trials, None)
        while True:
            while self._free and (self._going_on or new is not None):
                if self._going_on:
                    index, rung, pieces = heapq.heappop(self._going_on)
                    if pieces > 1:
                        heapq.heappush(self._going_on, (index, rung, pieces - 1))
                    self._rungs[index][rung - 1] = self._start(index, rung)
                elif new is not None:
                    self._due.append(self._now)
                    self._firsts.append(self._start(new, 0))
                    new = next(trials, None)
            if not self._running:
                break
            self._end()
        number = partial(bisect_left, self._due)
        return Openings(firsts=list(map(number, self._firsts)), rungs=[list(map(number, of)) for of in self._rungs])

    def _start(self, index: int, rung: int) -> float:
        """Starts a piece; returns when it has ended at the latest."""
        rungs = self._plan.brackets[index].rungs
        units = rungs[rung] - (rungs[rung - 1] if rung else 0)
        heapq.heappush(self._running, (self._now + units, index, rung))
        self._free -= 1
        return self._now + self._slack * units

    def _end(self) -> None:
        """Ends the pieces that end next, and cuts the rungs to which all have come."""
        self._now = self._running[0][0]
        while self._running and self._running[0][0] == self._now:
            _, index, rung = heapq.heappop(self._running)
            self._free += 1
            self._left[index] -= 1
            sizes = self._plan.brackets[index].sizes
            if not self._left[index] and rung + 1 < len(sizes):
                self._left[index] = sizes[rung + 1]
                heapq.heappush(self._going_on, (index, rung + 1, sizes[rung + 1]))
