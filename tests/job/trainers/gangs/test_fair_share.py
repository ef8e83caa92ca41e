"""Fair shares: within the cluster, by priority, with nothing left over that somebody wants, and nobody starved."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from hypothesis import given, settings, strategies as st

from tests.support.properties import examples
from tests.support.trainers.gangs.fair_share import NEEDS, PLACEMENTS, Nodes, clusters, take
from trainers.cluster.placement import how_many, lay
from trainers.gangs.sharing.fair_share import TURN_SECONDS, Claim, Held, Share, fair_shares

LOOK = 10  # Seconds between two looks of simulated jobs.


class Simulated:
    """Jobs on a cluster that take their shares; Ray puts what they start wherever it fits."""

    def __init__(self, claims: list[Claim], nodes: Nodes, random: Any) -> None:
        self.claims = {claim.name: replace(claim, holds=()) for claim in claims}
        self.nodes, self.random = nodes, random
        self.served = dict.fromkeys(self.claims, 0.0)
        self.starts = 0

    def free(self) -> Nodes:
        left = {node: dict(resources) for node, resources in self.nodes.items()}
        for claim in self.claims.values():
            for held in claim.holds:
                take(left, claim.need, held.nodes)
        return left

    def step(self) -> None:
        shares = fair_shares(list(self.claims.values()), self.nodes)
        order = list(self.claims)
        self.random.shuffle(order)
        short = {name for name, share in shares.items() if share.starts or share.later}
        for name in order:
            claim = self.claims[name]
            if short - {name}:
                kept = tuple(held for held in claim.holds if held.gang in shares[name].keeps)
                self.claims[name] = replace(claim, holds=kept)
        for name in order:
            self._start(name, shares[name])
        for name, claim in self.claims.items():
            if claim.at_work:
                self.claims[name] = replace(claim, turns=claim.turns + LOOK / claim.priority)
                self.served[name] += LOOK

    def _start(self, name: str, share: Share) -> None:
        claim = self.claims[name]
        for size in share.starts[:1]:
            if len(claim.holds) >= share.gangs:
                return
            free = self.free()
            if (where := somewhere(free, claim, size, self.random)) is not None:
                self.starts += 1
                held = Held(gang=f"{name}-{self.starts}", size=size, workers=size, group="g", nodes=where)
                self.claims[name] = replace(claim, holds=(*claim.holds, held))


def somewhere(free: Nodes, claim: Claim, size: int, random: Any) -> tuple[str, ...] | None:
    """Any of the places where a gang fits."""
    counts = {node: how_many(left, claim.need) for node, left in free.items()}
    if lay(free, claim.need, size, claim.placement) is None:
        return None
    if claim.placement == "STRICT_PACK":
        return (random.choice([node for node in counts if counts[node] >= size]),) * size
    if claim.placement == "STRICT_SPREAD":
        return tuple(random.sample([node for node in counts if counts[node]], size))
    return tuple(random.sample([node for node, count in counts.items() for _ in range(count)], size))


@st.composite
def rows_of_jobs(draw: st.DrawFn) -> list[Claim]:
    return [
        Claim(
            name=f"job{number}",
            priority=draw(st.integers(1, 5)),
            need=draw(st.sampled_from(NEEDS[:4])),
            placement=draw(st.sampled_from(PLACEMENTS)),
            wants=(draw(st.integers(1, 3)),) * draw(st.integers(1, 3)),
        )
        for number in range(draw(st.integers(2, 4)))
    ]


@settings(max_examples=examples(25))
@given(rows_of_jobs(), clusters(), st.integers(0, 1000))
def test_every_job_that_the_cluster_holds_has_its_turns_wherever_ray_puts_gangs(
    claims: list[Claim], nodes: Nodes, seed: int
) -> None:
    jobs = Simulated(claims, nodes, Random(seed))
    seconds = 1_200
    for _ in range(0, seconds, LOOK):
        jobs.step()
    weights = sum(claim.priority for claim in claims)
    for claim in claims:
        if lay(nodes, claim.need, claim.wants[0], claim.placement) is not None:
            due = seconds * claim.priority / weights
            assert jobs.served[claim.name] >= due - 2 * TURN_SECONDS * len(claims), jobs.served
    # Starts cost, so gangs stay for a turn.
    gangs = sum(len(claim.wants) for claim in claims)
    assert jobs.starts <= gangs * (seconds / TURN_SECONDS + 1)


@settings(max_examples=examples(15))
@given(st.lists(st.integers(1, 3), min_size=2, max_size=4))
def test_where_there_is_room_for_one_gang_turns_go_by_priority(priorities: list[int]) -> None:
    claims = [
        Claim(name=f"{number}", priority=priority, need={"CPU": 1.0}, wants=(1,))
        for number, priority in enumerate(priorities)
    ]
    jobs = Simulated(claims, {"node": {"CPU": 1.0}}, Random(0))
    for _ in range(0, 10_000, LOOK):
        jobs.step()
    for claim in claims:
        due = 10_000 * claim.priority / sum(priorities)
        assert abs(jobs.served[claim.name] - due) <= 2 * TURN_SECONDS * len(priorities)
