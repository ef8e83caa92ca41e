"""Neighbours: the other jobs on a cluster, their claims, and the share that is left for this one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import ray
from ray.util import placement_group_table

from trainers.cluster import Notices
from trainers.gangs.capacity import amounts
from trainers.gangs.mailbox import NAMESPACE, MailboxHandle
from trainers.gangs.sharing.fair_share import Claim, Held, Share, capacity, fair_shares, held_by, located

LOOK_EVERY = 2.0
"""Seconds between two looks at what the other jobs say."""

SILENT_AFTER = 20.0
"""Seconds after which a job that says nothing new is taken to want nothing."""


class Neighbours:
    """One job's side of fair shares: says in its mailbox what it wants and holds, and reads what the others say.

    Args:
        mailbox: the job's.
        claim: what it says, but for what changes.
        notices: of nodes that are drained, and what is free on the others.
        notify: is told that the job has less than it could use, and what it waits for where it has nothing.
    """

    def __init__(self, mailbox: MailboxHandle, claim: Claim, notices: Notices, notify: Callable[[str], None]) -> None:
        self._mailbox = mailbox
        self._mine = claim
        self._notices = notices
        self._notify = notify
        self._told_share = False
        self._told_waits: set[str] = set()
        """What the job was told to wait for since it had a gang."""
        self._others: dict[str, tuple[float, Claim]] = {}
        """The last claim of each other job, and when it came."""
        self._asked: dict[str, Any] = {}
        self._looked = 0.0
        self._level = False
        self._unseen: dict[str, dict[str, float]] = {}
        """What was used on each node outside of placement groups at the last look."""
        self._groups: Mapping[str, Any] = {}
        self._room: dict[str, dict[str, float]] = {}
        """What the jobs may hold together on each node, as of the last look."""
        self._claims: list[Claim] = []
        self._shares: dict[str, Share] = {}
        """None where no other job wants anything."""

    def share(self, wants: Sequence[int], holds: Sequence[Held]) -> Share | None:
        """The job's share now; None where no other job wants anything, so that it may hold all.

        It costs a few calls to the cluster every `LOOK_EVERY` seconds.

        Args:
            wants: workers of each gang that it could keep busy, the most urgent first.
            holds: the gangs that are there.
        """
        mine = replace(self._mine, wants=tuple(wants), holds=tuple(holds))
        changed, self._mine = mine != self._mine, mine
        if self._exchange():
            self._look()
        elif changed and self._shares:
            self._work_out()
        share = self._shares.get(self._mine.name)
        if share is not None:
            self._tell(share)
        return share

    def keeps(self, first: Callable[[str], bool]) -> frozenset[str]:
        """The gangs that the job may keep; of those that are alike for all others, which it would keep first.

        Args:
            first: whether it is a gang to keep before others.
        """
        return kept_first(self._claims, self._room, self._mine.name, first)

    @property
    def short(self) -> bool:
        """Whether another job has less than its share."""
        return any(share.starts or share.later for name, share in self._shares.items() if name != self._mine.name)

    def _tell(self, share: Share) -> None:
        wanted = len(self._mine.wants)
        if share.gangs < wanted and not self._told_share:
            self._told_share = True
            others = _jobs(claim.name for claim in self._wanting())
            self._notify(
                f"Shares this cluster with {others}: may hold {share.gangs} of the {wanted} gangs that it could use now"
            )
        if not share.waits_for:
            self._told_waits.clear()
            return
        names = _jobs(share.waits_for)
        if share.starts:
            reason = f"it is this job's turn when {names} has served what it serves, and gives its place back"
        elif share.later:
            reason = f"{names} goes first, and starts as soon as it has room"
        else:
            reason = f"{names} has it; jobs that there is no room for at once take turns, by priority"
        if reason not in self._told_waits:
            self._told_waits.add(reason)
            size, need = self._mine.wants[0], amounts(self._mine.need)
            self._notify(f"Waits for room for a gang of {size} workers of {need} each: {reason}")

    def _wanting(self) -> list[Claim]:
        return [claim for _, claim in self._others.values() if claim.wants or claim.holds]

    def _look(self) -> None:
        """Looks at what there is on each node."""
        if not self._wanting():
            self._shares = {}
            return
        nodes = {
            node["NodeID"]: node["Resources"]
            for node in ray.nodes()
            if node["Alive"] and node["NodeID"] not in self._notices.nodes
        }
        self._groups = placement_group_table()
        unseen = outside(nodes, self._notices.free_on, self._groups)
        # What was just given back is free a moment later: it is used only where two looks find that.
        used = {
            node: {name: min(amount, self._unseen.get(node, {}).get(name, 0.0)) for name, amount in resources.items()}
            for node, resources in unseen.items()
        }
        self._unseen = unseen
        claims = located([self._mine, *self._wanting()], self._groups)
        self._room = capacity(claims, nodes, self._groups, used)
        self._work_out()

    def _work_out(self) -> None:
        self._claims = located([self._mine, *self._wanting()], self._groups)
        self._shares = fair_shares(self._claims, self._room)

    def _exchange(self) -> bool:
        """Reads what came from the others, and if it is time asks again and says what this job wants.

        Returns:
            Whether there may be news.
        """
        now = time.monotonic()
        self._read(now)
        elapsed = now - self._looked
        if elapsed < LOOK_EVERY:
            return False
        turns = self._mine.turns
        if not self._level:
            # Whoever comes later starts level with the others, not with a right to all that they had before; until it
            # knows of them it is behind them all.
            self._level = self._looked > 0
            known = [claim.turns for _, claim in self._others.values() if math.isfinite(claim.turns)]
            turns = min(known, default=0.0) if self._level else math.inf
        elif self._mine.at_work:
            turns += elapsed / self._mine.priority
        self._looked = now
        self._mine = replace(self._mine, turns=turns)
        self._mailbox.claim(self._mine)
        self._ask()
        return True

    def _ask(self) -> None:
        """Asks every other mailbox; what it answers is read at the next look, so that nobody waits for it."""
        for actor in ray.util.list_named_actors(all_namespaces=True):
            name = actor["name"]
            if actor["namespace"] != NAMESPACE or name == self._mine.name or name in self._asked:
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


def _jobs(mailboxes: Iterable[str]) -> str:
    """The jobs that mailboxes are of, by their names."""
    return ", ".join(sorted({name.rpartition("-mailbox-")[0] for name in mailboxes}))


def kept_first(
    claims: Sequence[Claim], nodes: Mapping[str, Mapping[str, float]], name: str, first: Callable[[str], bool]
) -> frozenset[str]:
    """The gangs that a job may keep: those that it would keep first, where that is all the same to the other jobs.

    Args:
        claims: of all jobs, `located`.
        nodes: what they may hold together on each node.
        name: of the job's mailbox.
        first: whether it would keep a gang before others.
    """
    shares = fair_shares(claims, nodes)
    ordered = [
        replace(claim, holds=tuple(sorted(claim.holds, key=lambda held: not first(held.gang))))
        if claim.name == name
        else claim
        for claim in claims
    ]
    others = fair_shares(ordered, nodes)
    alike = all(others[job].gangs == share.gangs for job, share in shares.items())
    return frozenset((others if alike else shares)[name].keeps)


def outside(
    nodes: Mapping[str, Mapping[str, float]],
    free: Mapping[str, Mapping[str, float]],
    groups: Mapping[str, Mapping[str, Any]],
) -> dict[str, dict[str, float]]:
    """The usage of each node outside of placement groups, by tasks and actors of others.

    Args:
        nodes: what each node has.
        free: what each has free; one that is not named has nothing used.
        groups: as `ray.util.placement_group_table()` gives them.
    """
    amounts = held_by(groups)
    return {
        node: {
            name: max(0.0, amount - free[node].get(name, 0.0) - amounts.get(node, {}).get(name, 0.0))
            for name, amount in resources.items()
        }
        for node, resources in nodes.items()
        if node in free
    }
