"""What is used beside placement groups, and which gang makes way: the idle one, where it is all the same to others."""

from __future__ import annotations

from trainers.gangs.sharing.fair_share import Claim, Held
from trainers.gangs.sharing.neighbours import kept_first, outside

CPU = {"CPU": 1.0}


def gang(name: str, node: str, workers: int = 1) -> Held:
    return Held(gang=name, size=workers, workers=workers, group=name, nodes=(node,) * workers)


def test_what_placement_groups_hold_is_not_used_outside_of_them() -> None:
    nodes = {"a": {"CPU": 8.0}, "b": {"CPU": 4.0}, "new": {"CPU": 2.0}}
    groups = {"g": {"state": "CREATED", "bundles": {0: {"CPU": 3.0}}, "bundles_to_node_id": {0: "a"}}}
    free = {"a": {"CPU": 4.0}, "b": {"CPU": 4.0}}
    assert outside(nodes, free, groups) == {"a": {"CPU": 1.0}, "b": {"CPU": 0.0}}


def test_a_group_that_was_made_after_the_look_at_what_is_free_is_no_less_than_nothing() -> None:
    groups = {"g": {"state": "CREATED", "bundles": {0: {"CPU": 3.0}}, "bundles_to_node_id": {0: "a"}}}
    assert outside({"a": {"CPU": 8.0}}, {"a": {"CPU": 8.0}}, groups) == {"a": {"CPU": 0.0}}


def test_of_gangs_that_are_alike_for_others_the_idle_one_goes() -> None:
    nodes = {"a": {"CPU": 2.0}}
    mine = Claim(name="mine", priority=1, need=CPU, wants=(1, 1), holds=(gang("one", "a"), gang("other", "a")))
    new = Claim(name="new", priority=1, need=CPU, wants=(1,))
    assert kept_first([mine, new], nodes, "mine", lambda name: name == "other") == {"other"}
    assert kept_first([mine, new], nodes, "mine", lambda name: name == "one") == {"one"}


def test_the_idle_one_stays_where_only_the_place_of_the_busy_one_is_of_use() -> None:
    nodes = {"large": {"CPU": 2.0}, "small": {"CPU": 1.0}}
    mine = Claim(name="mine", priority=1, need=CPU, wants=(1, 1), holds=(gang("idle", "small"), gang("busy", "large")))
    new = Claim(name="new", priority=1, need={"CPU": 2.0}, wants=(1,))
    assert kept_first([mine, new], nodes, "mine", lambda name: name == "busy") == {"idle"}
