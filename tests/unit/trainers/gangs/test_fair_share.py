"""Fair shares: within the cluster, by priority, with nothing left over that somebody wants, and nobody starved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given, strategies as st

from tests.support.trainers.gangs.fair_share import NEEDS, PLACEMENTS, Nodes, clusters, take
from trainers.cluster.placement import lay
from trainers.gangs.sharing.fair_share import TURN_SECONDS, Claim, Held, Share, capacity, fair_shares, located


@st.composite
def situations(draw: st.DrawFn) -> tuple[list[Claim], Nodes]:
    """Jobs on a cluster, and what they hold, which has room there; some of it is starting, and nowhere yet."""
    nodes = draw(clusters())
    left = {node: dict(resources) for node, resources in nodes.items()}
    claims = []
    for number in range(draw(st.integers(1, 5))):
        need, placement = draw(st.sampled_from(NEEDS)), draw(st.sampled_from(PLACEMENTS))
        holds = []
        for gang in range(draw(st.integers(0, 3))):
            size = draw(st.integers(1, 3))
            where = lay(left, need, size, draw(st.sampled_from(("PACK", "SPREAD"))))
            if where is not None:
                take(left, need, where)
                where = draw(st.sampled_from((where, where, ())))
                name = f"job{number}-gang{gang}"
                holds.append(Held(gang=name, size=size, workers=size, group=name if where else "", nodes=where))
        claims.append(
            Claim(
                name=f"job{number}",
                priority=draw(st.integers(1, 4)),
                need=need,
                placement=placement,
                wants=tuple(draw(st.lists(st.integers(1, 4), max_size=6))),
                holds=tuple(holds),
                turns=draw(st.floats(0, 1000)),
            )
        )
    return claims, nodes


def dealt(share: Share, claim: Claim) -> Counter[int]:
    sizes = {held.gang: held.size for held in claim.holds}
    return Counter([*(sizes[gang] for gang in share.keeps), *share.starts, *share.later])


@given(situations(), st.randoms(use_true_random=False))
def test_shares_are_wanted_and_what_is_kept_fits_where_it_is(situation: tuple[list[Claim], Nodes], random: Any) -> None:
    claims, nodes = situation
    shares = fair_shares(claims, nodes)
    left = {node: dict(resources) for node, resources in nodes.items()}
    for claim in claims:
        share = shares[claim.name]
        assert len({*share.keeps}) == len(share.keeps)
        assert not dealt(share, claim) - Counter(claim.wants)
        for held in claim.holds:
            if held.gang in share.keeps:
                take(left, claim.need, held.nodes)
    assert all(amount > -1e-9 for resources in left.values() for amount in resources.values())
    assert fair_shares(random.sample(claims, len(claims)), nodes) == shares
    for claim in claims:
        # Beside what is kept alone: what others are to start is in the way of even less.
        unserved = Counter(claim.wants) - dealt(shares[claim.name], claim)
        if not any(share.starts or share.later for share in shares.values()) and not starting(claims, shares):
            assert all(lay(left, claim.need, size, claim.placement) is None for size in unserved), "room nobody uses"


def starting(claims: list[Claim], shares: Mapping[str, Share]) -> bool:
    return any(held.gang in shares[claim.name].keeps and not held.nodes for claim in claims for held in claim.holds)


@given(situations())
def test_who_is_first_in_the_row_has_a_gang_if_there_is_a_place_for_one_without_the_others(
    situation: tuple[list[Claim], Nodes],
) -> None:
    claims, nodes = situation
    claims = [replace(claim, turns=claim.turns + 100) for claim in claims]
    for claim in claims:
        row = [replace(claim, turns=0.0), *(other for other in claims if other is not claim)]
        fits = any(lay(nodes, claim.need, size, claim.placement) for size in claim.wants)
        keeps_one = any(held.nodes and held.size in claim.wants for held in claim.holds)
        share = fair_shares(row, nodes)[claim.name]
        assert (share.gangs > 0) == (fits or keeps_one)
        assert not share.later or share.starts or share.keeps, "nobody goes before it"


@given(situations())
def test_who_has_no_gang_says_for_whom_it_waits_unless_no_job_is_in_its_way(
    situation: tuple[list[Claim], Nodes],
) -> None:
    claims, nodes = situation
    shares = fair_shares(claims, nodes)
    there = {claim.name for claim in claims if claim.holds} | {name for name, share in shares.items() if share.gangs}
    for claim in claims:
        share = shares[claim.name]
        assert set(share.waits_for) <= there - {claim.name}
        if share.gangs == 0 and claim.wants:
            alone = any(lay(nodes, claim.need, size, claim.placement) for size in claim.wants)
            assert bool(share.waits_for) == alone
            assert not share.turn
        if share.later and not share.keeps and not share.starts and not claim.at_work:
            assert share.waits_for
    free = {node: dict(resources) for node, resources in nodes.items()}
    for claim in claims:
        for held in claim.holds:
            take(free, claim.need, held.nodes)
    for claim in claims:
        starts = shares[claim.name].starts
        if starts and not claim.at_work and lay(free, claim.need, starts[0], claim.placement) is None:
            own = any(held.nodes for held in claim.holds)
            assert shares[claim.name].waits_for or own, "who has it, and is not asked to give it back?"


@given(situations(), st.floats(0, 8), st.data())
def test_nothing_is_counted_twice(situation: tuple[list[Claim], Nodes], strangers: float, data: st.DataObject) -> None:
    """What the jobs may hold is the same whether a gang's resources are held yet, and whether its job knows of them."""
    claims, nodes = situation
    claims = [
        replace(claim, driver=f"driver{number}", holds=tuple(h for h in claim.holds if h.nodes))
        for number, claim in enumerate(claims)
    ]
    groups = {
        f"{held.gang}-{claim.driver}": {
            "state": "CREATED",
            "bundles": {number: dict(claim.need) for number in range(held.workers)},
            "bundles_to_node_id": dict(enumerate(held.nodes)),
        }
        for claim in claims
        for held in claim.holds
    }
    groups["strangers"] = {
        "state": "CREATED",
        "bundles": {0: {"CPU": strangers}},
        "bundles_to_node_id": {0: "node0"},
    }
    expected = {node: dict(resources) for node, resources in nodes.items()}
    expected["node0"]["CPU"] = max(0.0, expected["node0"]["CPU"] - strangers)

    def said(claim: Claim, held: Held) -> Held:
        known = data.draw(st.booleans())
        return replace(
            held, nodes=(), group=f"{held.gang}-{claim.driver}" if known else data.draw(st.sampled_from(("", "lost")))
        )

    told = [replace(claim, holds=tuple(said(claim, held) for held in claim.holds)) for claim in claims]
    found = located(told, groups)
    assert capacity(found, nodes, groups, {}) == expected
    for claim, one in zip(
        claims,
        sorted(found, key=lambda claim: claims.index(next(c for c in claims if c.name == claim.name))),
        strict=True,
    ):
        assert Counter((h.size, h.nodes) for h in one.holds) == Counter((h.size, h.nodes) for h in claim.holds)
    before = {group: row for group, row in groups.items() if group == "strangers" or data.draw(st.booleans())}
    assert capacity(located(told, before), nodes, before, {}) == expected


@given(st.integers(1, 5), st.integers(1, 5), st.integers(10, 60))
def test_shares_go_by_priority(one: int, other: int, cpus: int) -> None:
    jobs = [
        Claim(name="a", priority=one, need={"CPU": 1.0}, wants=(1,) * 100),
        Claim(name="b", priority=other, need={"CPU": 1.0}, wants=(1,) * 100),
    ]
    shares = fair_shares(jobs, {"node": {"CPU": float(cpus)}})
    mine, others = shares["a"].gangs, shares["b"].gangs
    assert mine + others == cpus
    assert abs(mine / one - others / other) <= 1 / min(one, other) + 1e-9


def test_what_one_job_does_not_want_goes_to_the_others() -> None:
    jobs = [
        Claim(name="small", priority=1, need={"CPU": 1.0}, wants=(2,)),
        Claim(name="large", priority=1, need={"CPU": 1.0}, wants=(2,) * 20),
    ]
    shares = fair_shares(jobs, {"node": {"CPU": 12.0}})
    assert (shares["small"].gangs, shares["large"].gangs) == (1, 5)


def test_cpus_in_pieces_are_no_room_so_jobs_take_turns() -> None:
    """Of 8 and 4 CPUs, a gang of 2 workers of 3 leaves 2 and 4: 6 in all, and no room for another."""
    nodes = {"head": {"CPU": 8.0}, "node": {"CPU": 4.0}}
    gang = Held(gang="low-gang", size=2, workers=2, group="g", nodes=("head", "head"))
    low = Claim(name="low", priority=1, need={"CPU": 3.0}, wants=(2, 2), holds=(gang,))
    high = Claim(name="high", priority=5, need={"CPU": 3.0}, wants=(2, 2))
    first = fair_shares([low, high], nodes)
    assert first["low"] == Share(keeps=("low-gang",))
    assert first["high"] == Share(waits_for=("low",), turn=False)
    then = fair_shares([replace(low, turns=TURN_SECONDS + 1), high], nodes)
    assert then["low"] == Share(waits_for=("high",), turn=False)
    assert then["high"] == Share(starts=(2,), waits_for=("low",))


def test_a_gang_gives_way_that_lies_across_the_only_node_that_holds_another() -> None:
    nodes = {"large": {"CPU": 8.0}, "small": {"CPU": 4.0}}
    gangs = tuple(
        Held(gang=f"gang-{node}", size=1, workers=1, group=node, nodes=(node,)) for node in ("small", "large")
    )
    wide = Claim(name="wide", priority=1, need={"CPU": 1.0}, wants=(1, 1), holds=gangs)
    tall = Claim(name="tall", priority=1, need={"CPU": 8.0}, wants=(1,))
    shares = fair_shares([wide, tall], nodes)
    assert shares["tall"] == Share(starts=(1,), waits_for=("wide",))
    assert shares["wide"] == Share(keeps=("gang-small",), later=(1,))


def test_who_comes_later_does_not_start_where_it_could_take_the_place_of_who_goes_first() -> None:
    nodes = {"one": {"CPU": 8.0}, "other": {"CPU": 8.0}}
    tall = Claim(name="tall", priority=1, need={"CPU": 8.0}, wants=(1,))
    wide = Claim(name="wide", priority=1, need={"CPU": 1.0}, placement="SPREAD", wants=(2,), turns=1.0)
    shares = fair_shares([tall, wide], nodes)
    assert shares["tall"] == Share(starts=(1,))
    assert shares["wide"] == Share(later=(2,), waits_for=("tall",))
