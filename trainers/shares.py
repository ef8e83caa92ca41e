"""Fair shares: how many gangs each of the jobs on one cluster may hold.

Every job's driver says in its own mailbox what it could use and what it holds, reads what the others say, and works the
same shares out: there is no coordinator to start, to lose or to leave behind.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ray

from trainers.mailbox import NAMESPACE, MailboxHandle

LOOK_EVERY = 2.0
"""Seconds between two looks at what the other jobs say."""

SILENT_AFTER = 20.0
"""Seconds after which a job that says nothing new is taken to want nothing."""

TURN_SECONDS = 60.0
"""How long a job keeps its only gang before one that has none may have its place: a gang's start costs 10 of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What one job says.

    Args:
        name: of its mailbox, which no other job has.
        priority: its weight, 1 or more: with 2 it gets twice the share of a job with 1.
        need: resources of one worker.
        wants: workers of each gang that it could keep busy, the most urgent first.
        holds: workers of each gang that it has, up or starting.
        turns: seconds for which it has held a gang, by its priority; it decides who goes first where not every job can
            have one.
    """

    name: str
    priority: int
    need: Mapping[str, float]
    wants: tuple[int, ...] = ()
    holds: tuple[int, ...] = ()
    turns: float = 0.0


def fair_shares(claims: Sequence[Claim], capacity: Mapping[str, float]) -> dict[str, tuple[int, ...]]:
    """The gangs that each job may hold, by their workers.

    First every job gets one gang, as far as there is room, those first that had the fewest turns. The rest is dealt out
    a gang at a time, to the job that then has the least of the resource it has most of, by its priority: weighted
    dominant resource fairness (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011, section 4).

    Args:
        claims: of all jobs; the answer is the same for every order.
        capacity: what they may hold together.
    """
    left = dict(capacity)
    dealt: dict[str, list[int]] = {claim.name: [] for claim in claims}
    wanted = {claim.name: list(claim.wants) for claim in claims}

    def deal(claim: Claim) -> bool:
        for workers in wanted[claim.name]:
            if all(left.get(name, 0.0) >= amount * workers for name, amount in claim.need.items()):
                for name, amount in claim.need.items():
                    left[name] -= amount * workers
                wanted[claim.name].remove(workers)
                dealt[claim.name].append(workers)
                return True
        return False

    def share(claim: Claim) -> tuple[float, str]:
        workers = sum(dealt[claim.name]) + wanted[claim.name][0]
        most = max((workers * amount / capacity[name] for name, amount in claim.need.items()), default=0.0)
        return most / claim.priority, claim.name

    for claim in sorted(claims, key=_turn):
        deal(claim)
    open_claims = [claim for claim in claims if dealt[claim.name] and wanted[claim.name]]
    while open_claims:
        claim = min(open_claims, key=share)
        if not deal(claim) or not wanted[claim.name]:
            open_claims.remove(claim)
    return {name: tuple(gangs) for name, gangs in dealt.items()}


def _turn(claim: Claim) -> tuple[float, str]:
    """Where a job stands in the row for a first gang; one that has it keeps it for a while."""
    return claim.turns - (TURN_SECONDS / claim.priority if claim.holds else 0.0), claim.name


@dataclass(slots=True)
class Share:
    """One job's side: says what it wants, and tells what it may hold.

    Args:
        mailbox: the job's.
        name: of that mailbox.
        priority: see `Claim`.
        need: resources of one worker.
    """

    mailbox: MailboxHandle
    name: str
    priority: int
    need: Mapping[str, float]
    _others: dict[str, tuple[float, Claim]] = field(default_factory=dict)
    """The last claim of each other job, and when it came."""
    _asked: dict[str, Any] = field(default_factory=dict)
    _looked: float = 0.0
    _turns: float | None = None
    _last: tuple[Claim, dict[int, int]] | None = None
    others_short: bool = False
    """Whether another job holds less than its share."""

    def allowed(self, sizes: Mapping[int, int], holds: Sequence[int]) -> dict[int, int]:
        """How many of the gangs that the job could keep busy it may hold now, by their workers.

        All of them where no other job wants any. It costs a few calls to the cluster every `LOOK_EVERY` seconds.

        Args:
            sizes: how many gangs of each size could be busy, the most urgent size first.
            holds: workers of each gang that is there.
        """
        wants = tuple(workers for workers, count in sizes.items() for _ in range(count))
        mine = Claim(name=self.name, priority=self.priority, need=self.need, wants=wants, holds=tuple(holds))
        mine, news = self._exchange(mine)
        if self._last is None or news or self._last[0] != mine:
            self._last = mine, self._work_out(mine, sizes)
        return self._last[1]

    @property
    def others(self) -> list[str]:
        """The other jobs that hold or want gangs."""
        return sorted(claim.name.rpartition("-mailbox-")[0] for claim in self._claims())

    @property
    def waits_for_others(self) -> bool:
        """Whether other jobs hold gangs now: then a job that has none waits for its turn, not for ever."""
        return any(claim.holds for claim in self._claims())

    def _claims(self) -> list[Claim]:
        return [claim for _, claim in self._others.values() if claim.wants or claim.holds]

    def _work_out(self, mine: Claim, sizes: Mapping[int, int]) -> dict[int, int]:
        others = self._claims()
        if not others:
            self.others_short = False
            return dict(sizes)
        shares = fair_shares([mine, *others], _capacity([mine, *others]))
        self.others_short = any(len(shares[claim.name]) > len(claim.holds) for claim in others)
        mine_of = Counter(shares[mine.name])
        return {workers: mine_of[workers] for workers in sizes if mine_of[workers]}

    def _exchange(self, mine: Claim) -> tuple[Claim, bool]:
        """Reads what came from the others, and if it is time asks again and says what this job wants.

        Returns:
            The job's claim with its turns, and whether there may be news.
        """
        now = time.monotonic()
        self._read(now)
        elapsed, due = now - self._looked, now - self._looked >= LOOK_EVERY
        if due:
            if self._turns is None and self._looked:
                # Whoever comes later starts level with the others, not with a right to all that they had before.
                self._turns = min((claim.turns for _, claim in self._others.values()), default=0.0)
            elif self._turns is not None and mine.holds:
                self._turns += elapsed / self.priority
            self._looked = now
            mine = replace(mine, turns=self._turns or 0.0)
            self.mailbox.claim(mine)
            self._ask()
        return replace(mine, turns=self._turns or 0.0), due

    def _ask(self) -> None:
        """Asks every other mailbox; what it answers is read at the next look, so that nobody waits for it."""
        for actor in ray.util.list_named_actors(all_namespaces=True):
            name = actor["name"]
            if actor["namespace"] != NAMESPACE or name == self.name or name in self._asked:
                continue
            try:
                self._asked[name] = MailboxHandle.of(name).claims()
            except ValueError:
                continue  # It has just ended.

    def _read(self, now: float) -> None:
        for name, asked in list(self._asked.items()):
            ready, _ = ray.wait([asked], timeout=0)
            if not ready:
                continue
            del self._asked[name]
            try:
                answer = ray.get(asked)
            except ray.exceptions.RayError:
                answer = None  # Its job has ended.
            if answer is not None and answer[0] < SILENT_AFTER:
                self._others[name] = now, answer[1]
            else:
                self._others.pop(name, None)
        for name, (at, _) in list(self._others.items()):
            if now - at > SILENT_AFTER:
                del self._others[name]


def _capacity(claims: Sequence[Claim]) -> dict[str, float]:
    """What the jobs may hold together: what is free, and what they hold."""
    capacity = dict(ray.available_resources())
    for claim in claims:
        for name, amount in claim.need.items():
            capacity[name] = capacity.get(name, 0.0) + amount * sum(claim.holds)
    return capacity
