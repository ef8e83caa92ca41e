"""Fair shares: the gangs that each job on a cluster may hold, and the nodes with room for them; pure.

Every job's driver works the same shares out from what all of them say (`neighbours`): there is no coordinator to
start, to lose or to leave behind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainers.cluster import how_many, lay

TURN_SECONDS = 60.0
"""How long a job keeps its only gang before one that has none may have its place: a gang's start costs 10 of them."""

_SLACK = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A gang that a job has, up or starting.

    Args:
        gang: its name.
        size: what it counts as among the gangs that the job wants.
        workers: how many it has; more than `size` where it is elastic.
        group: id of the placement group that holds its resources, as far as the job knows.
        nodes: where its workers are; empty until `located`, and while nothing is held for them.
    """

    gang: str
    size: int
    workers: int
    group: str = ""
    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """Claim of one job.

    Args:
        name: of its mailbox, which no other job has.
        priority: its weight, 1 or more: with 2 it gets twice the share of a job with 1.
        need: resources of one worker.
        placement: Ray's word for how its gangs are laid over nodes.
        wants: workers of each gang that it could keep busy, the most urgent first.
        spare: workers that a gang may have beyond those, where there is room.
        holds: what it has, those first that it would keep first.
        turns: seconds for which it has held a gang, by its priority; it decides who goes first where not every job can
            have one.
        driver: id of its driver in Ray, in which the ids of its placement groups end.
    """

    name: str
    priority: int
    need: Mapping[str, float]
    placement: str = "PACK"
    wants: tuple[int, ...] = ()
    spare: int = 0
    holds: tuple[Held, ...] = ()
    turns: float = 0.0
    driver: str = ""

    @property
    def at_work(self) -> bool:
        """Whether it has a gang that it wants."""
        return any(hold.size in self.wants for hold in self.holds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Share of one job.

    Args:
        keeps: names of its gangs that it may keep.
        starts: workers of each further gang that it may start as soon as there is room.
        later: those that have to wait, lest they take the place of a job's first gang.
        waits_for: the jobs that have to give back, start or have their turn before this one has a gang that it wants;
            empty where it has one, and where no job stands in its way.
        turn: whether it is this one's turn: those others have no right any more to what it waits for.
    """

    keeps: tuple[str, ...] = ()
    starts: tuple[int, ...] = ()
    later: tuple[int, ...] = ()
    waits_for: tuple[str, ...] = ()
    turn: bool = True

    @property
    def gangs(self) -> int:
        """How many it may hold."""
        return len(self.keeps) + len(self.starts) + len(self.later)


def fair_shares(claims: Sequence[Claim], nodes: Mapping[str, Mapping[str, float]]) -> dict[str, Share]:
    """The gangs that each job may hold.

    First every job gets one gang, as far as there is room, those first that had the fewest turns. The rest is dealt out
    a gang at a time, to the job that then has the least of the resource it has most of, by its priority: weighted
    dominant resource fairness (Ghodsi et al., "Dominant Resource Fairness", NSDI 2011, section 4).

    A gang is dealt to a place: where the job has one, else where nothing is, else where others have to give back what
    has not been dealt to them. So what is dealt fits, node by node, and what was dealt earlier never yields.

    Args:
        claims: of all jobs, `located`; the answer is the same for every order.
        nodes: what they may hold together on each node; see `capacity`.
    """
    row = sorted(claims, key=_place_in_row)
    deal = _Deal(row, nodes)
    total: Counter[str] = Counter()
    for resources in nodes.values():
        total.update(resources)

    def share(claim: Claim) -> tuple[float, str]:
        workers = sum(deal.sizes(claim)) + deal.wanted[claim.name][0]
        most = max((workers * amount / total[name] for name, amount in claim.need.items()), default=0.0)
        return most / claim.priority, claim.name

    for claim in row:
        deal.one(claim)
    open_claims = [claim for claim in row if deal.sizes(claim) and deal.wanted[claim.name]]
    while open_claims:
        claim = min(open_claims, key=share)
        if not deal.one(claim) or not deal.wanted[claim.name]:
            open_claims.remove(claim)
    return {claim.name: deal.share(claim) for claim in row}


def located(claims: Iterable[Claim], groups: Mapping[str, Mapping[str, Any]]) -> list[Claim]:
    """The claims, with where the workers of each gang are.

    A gang whose placement group is there before its job has heard of it is found by its driver and its bundles.

    Args:
        claims: what the jobs say.
        groups: as `ray.util.placement_group_table()` gives them.
    """
    claims = sorted(claims, key=lambda claim: claim.name)
    there = {group: nodes for group, row in groups.items() if (nodes := _nodes_of(row))}
    unknown = there.keys() - {hold.group for claim in claims for hold in claim.holds}

    def find(claim: Claim, hold: Held) -> Held:
        if hold.group in there:
            return replace(hold, nodes=there[hold.group])
        for group in sorted(unknown):
            bundles = list(groups[group]["bundles"].values())
            if claim.driver and group.endswith(claim.driver) and bundles == [dict(claim.need)] * hold.workers:
                unknown.discard(group)
                return replace(hold, group=group, nodes=there[group])
        return hold

    return [replace(claim, holds=tuple(find(claim, hold) for hold in claim.holds)) for claim in claims]


def capacity(
    claims: Iterable[Claim],
    nodes: Mapping[str, Mapping[str, float]],
    groups: Mapping[str, Mapping[str, Any]],
    outside: Mapping[str, Mapping[str, float]],
) -> dict[str, dict[str, float]]:
    """The resources of each node for all jobs together: all but those of others.

    What a job holds is never looked for among what is free, so that a gang whose resources are held only just, or not
    yet, does not count twice.

    Args:
        claims: of all jobs, `located`.
        nodes: what each node has.
        groups: as `ray.util.placement_group_table()` gives them.
        outside: what is used on each node outside of placement groups.
    """
    mine = {hold.group for claim in claims for hold in claim.holds}
    others = {group: row for group, row in groups.items() if group not in mine}
    left = {node: dict(resources) for node, resources in nodes.items()}
    for used in (held_by(others), outside):
        for node, resources in used.items():
            for name, amount in resources.items() if node in left else ():
                left[node][name] = max(0.0, left[node].get(name, 0.0) - amount)
    return left


def held_by(groups: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """The resources of placement groups on each node.

    Args:
        groups: as `ray.util.placement_group_table()` gives them.
    """
    amounts: dict[str, dict[str, float]] = {}
    for row in groups.values():
        if row["state"] == "REMOVED":  # It is told of as long as the job that made it runs.
            continue
        for bundle, node in row["bundles_to_node_id"].items():
            there = amounts.setdefault(node, {})
            for name, amount in row["bundles"][bundle].items():
                there[name] = there.get(name, 0.0) + amount
    return amounts


def _nodes_of(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row["bundles_to_node_id"].values()) if row["state"] == "CREATED" else ()


def _place_in_row(claim: Claim) -> tuple[float, str]:
    """Where a job stands in the row for a first gang; one that has it keeps it for a while."""
    return claim.turns - (TURN_SECONDS / claim.priority if claim.at_work else 0.0), claim.name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Dealt:
    """One gang that a job may hold: one that it has, or a further one, and where."""

    claim: Claim
    size: int
    nodes: tuple[str, ...]
    keeps: str = ""


class _Deal:
    """Deal of resources so far, and the rest.

    Args:
        row: the claims, those first that go first.
        nodes: what the jobs may hold on each node.
    """

    def __init__(self, row: Sequence[Claim], nodes: Mapping[str, Mapping[str, float]]) -> None:
        self.wanted = {claim.name: list(claim.wants) for claim in row}
        self._row = row
        self._nodes = nodes
        self._dealt: list[_Dealt] = []
        self._left = {node: dict(resources) for node, resources in nodes.items()}
        """Beside what was dealt."""
        self._free = {node: dict(resources) for node, resources in nodes.items()}
        """Beside that, and what the jobs hold and was not dealt to anybody else."""
        self._open: dict[str, list[Held]] = {}
        """What each job holds that was dealt to nobody."""
        for claim in row:
            self._open[claim.name] = list(claim.holds)
            for hold in claim.holds:
                _take(self._free, claim.need, hold.nodes)

    def sizes(self, claim: Claim) -> list[int]:
        """Of the gangs that were dealt to a job."""
        return [dealt.size for dealt in self._dealt if dealt.claim is claim]

    def one(self, claim: Claim) -> bool:
        """Deals a job the most urgent gang that there is a place for; returns whether there is one."""
        for size in dict.fromkeys(self.wanted[claim.name]):
            if self._keep(claim, size) or self._place(claim, size):
                self.wanted[claim.name].remove(size)
                return True
        return False

    def _keep(self, claim: Claim, size: int) -> bool:
        for hold in self._open[claim.name]:
            # What a job says that it holds on a node that has gone, or has less than that, it cannot keep.
            if hold.size == size and hold.nodes and _fits(self._left, claim.need, hold.nodes):
                self._open[claim.name].remove(hold)
                _take(self._left, claim.need, hold.nodes)
                self._dealt.append(_Dealt(claim=claim, size=size, nodes=hold.nodes, keeps=hold.gang))
                return True
        return False

    def _place(self, claim: Claim, size: int) -> bool:
        """A place for a gang that has none: a further one, or one that is starting."""
        nodes = lay(self._free, claim.need, size, claim.placement) or self._cleared(claim, size)
        if nodes is None:
            return False
        starting = next((hold for hold in self._open[claim.name] if hold.size == size and not hold.nodes), None)
        if starting is not None:
            self._open[claim.name].remove(starting)
        for room in (self._left, self._free):
            _take(room, claim.need, nodes)
        keeps = starting.gang if starting is not None else ""
        self._dealt.append(_Dealt(claim=claim, size=size, nodes=nodes, keeps=keeps))
        return True

    def _cleared(self, claim: Claim, size: int) -> tuple[str, ...] | None:
        """A place that others give back, or the job itself: as little as will do, from those who go last."""
        if lay(self._left, claim.need, size, claim.placement) is None:
            return None
        gone: list[tuple[Claim, Held]] = []
        for other, hold in self._could_go(claim):
            gone.append((other, hold))
            _give(self._free, other.need, hold.nodes)
            if lay(self._free, claim.need, size, claim.placement) is not None:
                break
        for other, hold in reversed(list(gone)):
            _take(self._free, other.need, hold.nodes)
            if lay(self._free, claim.need, size, claim.placement) is None:
                _give(self._free, other.need, hold.nodes)
            else:
                gone.remove((other, hold))
        for other, hold in gone:
            self._open[other.name].remove(hold)
        return lay(self._free, claim.need, size, claim.placement)

    def _could_go(self, claim: Claim) -> list[tuple[Claim, Held]]:
        """The holds not dealt: the job's own, then others' beside another gang, then their only ones."""

        def order(candidate: tuple[int, Claim, Held]) -> tuple[bool, bool, int]:
            place, other, _ = candidate
            only = not self.sizes(other) and len(self._open[other.name]) == 1
            return other is not claim, only, -place

        candidates = [
            (place, other, hold)
            for place, other in enumerate(self._row)
            for hold in reversed(self._open[other.name])
            if hold.nodes
        ]
        return [(other, hold) for _, other, hold in sorted(candidates, key=order)]

    def share(self, claim: Claim) -> Share:
        """A job's share, once all is dealt."""
        mine = [(number, dealt) for number, dealt in enumerate(self._dealt) if dealt.claim is claim]
        ahead = {number: self._endangered(number) for number, dealt in mine if not dealt.keeps}
        waits_for: Iterable[str] = ()
        if not mine:
            waits_for = self._before(claim)
        elif not claim.at_work and ahead:
            number, first = next((number, dealt) for number, dealt in mine if number in ahead)
            waits_for = ahead[number] or self._in_way(first)
        return Share(
            keeps=tuple(dealt.keeps for _, dealt in mine if dealt.keeps),
            starts=tuple(dealt.size for number, dealt in mine if number in ahead and not ahead[number]),
            later=tuple(dealt.size for number, dealt in mine if ahead.get(number)),
            waits_for=tuple(sorted(waits_for)),
            turn=bool(mine),
        )

    def _in_way(self, dealt: _Dealt) -> set[str]:
        """The jobs that hold something in the place of a gang, which they have to give back."""
        if lay(self._unused(), dealt.claim.need, dealt.size, dealt.claim.placement) is not None:
            return set()
        return {
            claim.name
            for claim in self._row
            for hold in claim.holds
            if claim is not dealt.claim and set(hold.nodes) & set(dealt.nodes) and claim.need.keys() & dealt.claim.need
        }

    def _before(self, claim: Claim) -> tuple[str, ...]:
        """The jobs whose turn it is, for one that has no gang: none where it would not fit without them either."""
        if not any(lay(self._nodes, claim.need, size, claim.placement) for size in claim.wants):
            return ()
        return tuple(sorted({dealt.claim.name for dealt in self._dealt if dealt.claim.need.keys() & claim.need}))

    def _endangered(self, number: int) -> set[str]:
        """The jobs without a gang that go first and may lose the place of one, wherever Ray puts this one."""
        mine = self._dealt[number]
        # A further gang is no reason to wait: it may not be worth its start, and never come.
        earlier = [
            dealt
            for dealt in self._dealt[:number]
            if not dealt.keeps and not dealt.claim.at_work and dealt.claim is not mine.claim
        ]
        earlier = list({dealt.claim.name: dealt for dealt in reversed(earlier)}.values())
        if not earlier:
            return set()
        left = {node: dict(resources) for node, resources in self._nodes.items()}
        for dealt in (*(dealt for dealt in self._dealt if dealt.keeps), *earlier):
            _take(left, dealt.claim.need, dealt.nodes)
        unused, most = self._unused(), mine.size + mine.claim.spare
        return {
            dealt.claim.name
            for dealt in earlier
            for node in set(dealt.nodes)
            for most_there in [min(most, how_many(unused[node], mine.claim.need))]
            for name in mine.claim.need.keys() & dealt.claim.need
            if left[node].get(name, 0.0) + _SLACK < most_there * mine.claim.need[name]
        }

    def _unused(self) -> dict[str, dict[str, float]]:
        """The resources that no job holds now."""
        unused = {node: dict(resources) for node, resources in self._nodes.items()}
        for claim in self._row:
            for hold in claim.holds:
                _take(unused, claim.need, hold.nodes)
        return unused


def _fits(room: Mapping[str, Mapping[str, float]], need: Mapping[str, float], nodes: Sequence[str]) -> bool:
    return all(node in room and how_many(room[node], need) >= workers for node, workers in Counter(nodes).items())


def _take(room: dict[str, dict[str, float]], need: Mapping[str, float], nodes: Sequence[str], sign: int = -1) -> None:
    for node in nodes:
        for name, amount in need.items() if node in room else ():
            room[node][name] = room[node].get(name, 0.0) + sign * amount


def _give(room: dict[str, dict[str, float]], need: Mapping[str, float], nodes: Sequence[str]) -> None:
    _take(room, need, nodes, 1)
