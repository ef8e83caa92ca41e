"""How many workers nodes hold, beside placement groups and by placement: pure."""

from __future__ import annotations

from collections import Counter
from itertools import repeat
from typing import Any

import pytest
from hypothesis import given, strategies as st
from ray.train import ScalingConfig

from trainers.cluster.placement import free_places, gangs_that_fit, given_back, has_labels, lay, places
from trainers.gangs import capacity as room
from trainers.gangs.capacity import Room

CPU = {"CPU": 1.0}


def node(name: str, *, alive: bool = True, **resources: float) -> dict[str, Any]:
    return {"NodeID": name, "Alive": alive, "Resources": {"memory": 1e9, **resources}}


def group(state: str, **bundles: tuple[str, dict[str, float]]) -> dict[str, Any]:
    numbered = dict(enumerate(bundles.values()))
    return {
        "state": state,
        "bundles": {number: resources for number, (_, resources) in numbered.items()},
        "bundles_to_node_id": {number: where for number, (where, _) in numbered.items()},
    }


def test_a_node_holds_what_its_scarcest_resource_gives() -> None:
    nodes = [node("a", CPU=4, GPU=1), node("b", CPU=3), node("dead", alive=False, CPU=64)]
    assert places(nodes, CPU) == {"a": 4, "b": 3}
    assert places(nodes, {"CPU": 2.0}) == {"a": 2, "b": 1}
    assert places(nodes, {"GPU": 0.5, "CPU": 1.0}) == {"a": 2, "b": 0}


@pytest.mark.parametrize(
    ("selector", "allowed"),
    [
        (None, "abc"),
        ({"zone": "east"}, "a"),
        ({"zone": "!east"}, "bc"),
        ({"zone": "in(east, west)"}, "ab"),
        ({"zone": "!in(east,west)"}, "c"),
        ({"zone": "in(east, west)", "market": "!spot"}, "b"),
        ({"market": "on-demand"}, ""),
    ],
)
def test_labels_say_which_nodes_are_allowed(selector: dict[str, str] | None, allowed: str) -> None:
    nodes = {"a": {"zone": "east", "market": "spot"}, "b": {"zone": "west"}, "c": {}}
    assert "".join(name for name, labels in nodes.items() if has_labels({"Labels": labels}, selector)) == allowed


def test_fractions_count_as_ray_counts_them() -> None:
    assert places([node("a", CPU=0.1 + 0.2)], {"CPU": 0.3}) == {"a": 1}


def test_placement_groups_take_their_room_where_they_are() -> None:
    nodes = [node("a", CPU=4), node("b", CPU=4)]
    held = {
        "one": group("CREATED", x=("a", {"CPU": 3.0}), y=("b", {"CPU": 2.0})),
        "gone": group("REMOVED", x=("b", {"CPU": 2.0})),
        "waits": group("PENDING", x=("", {"CPU": 4.0})),
        "elsewhere": group("RESCHEDULING", x=("dead", {"CPU": 4.0})),
    }
    assert free_places(nodes, held, CPU) == {"a": 1, "b": 2}


def test_free_cpus_in_pieces_hold_no_worker_that_needs_several() -> None:
    nodes = [node("a", CPU=4), node("b", CPU=4)]
    held = {"one": group("CREATED", x=("a", {"CPU": 3.0}), y=("b", {"CPU": 3.0}))}
    left = free_places(nodes, held, {"CPU": 2.0})
    assert gangs_that_fit(list(left.values()), 1, "PACK") == 0


@pytest.mark.parametrize(("placement", "gangs"), [("PACK", 4), ("SPREAD", 4), ("STRICT_PACK", 3), ("STRICT_SPREAD", 3)])
def test_strict_placements_make_fewer_gangs_of_the_same_nodes(placement: str, gangs: int) -> None:
    assert gangs_that_fit([5, 2, 1], 2, placement) == gangs


@given(st.lists(st.integers(0, 6), max_size=5), st.integers(1, 4))
def test_strict_spread_is_what_dealing_one_gang_after_another_finds(held: list[int], workers: int) -> None:
    left, dealt = list(held), 0
    while sum(count > 0 for count in left) >= workers:
        left.sort(reverse=True)  # A gang from the fullest nodes never loses one.
        left = [count - taken for count, taken in zip(left, [1] * workers + list(repeat(0, len(left))), strict=False)]
        dealt += 1
    assert gangs_that_fit(held, workers, "STRICT_SPREAD") == dealt


PLACEMENTS = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")


@given(st.lists(st.integers(0, 6), max_size=5), st.integers(1, 6), st.sampled_from(PLACEMENTS))
def test_a_gang_is_laid_where_one_fits_and_only_there(held: list[int], workers: int, placement: str) -> None:
    free = {f"node{number}": {"CPU": 2.0 * count + 1} for number, count in enumerate(held)}
    laid = lay(free, {"CPU": 2.0}, workers, placement)
    assert (laid is not None) == (gangs_that_fit(held, workers, placement) > 0)
    if laid is not None:
        assert len(laid) == workers
        used = Counter(laid)
        assert all(count <= held[int(node.removeprefix("node"))] for node, count in used.items())
        assert placement != "STRICT_PACK" or len(used) == 1
        assert placement != "STRICT_SPREAD" or len(used) == workers


def test_a_gang_is_laid_in_the_tightest_node_that_holds_it_or_in_as_few_as_there_can_be() -> None:
    free = {"large": {"CPU": 8.0}, "small": {"CPU": 4.0}, "tiny": {"CPU": 1.0}}
    assert lay(free, CPU, 3, "PACK") == ("small",) * 3
    assert lay(free, CPU, 9, "PACK") == ("large",) * 8 + ("small",)
    assert lay(free, CPU, 3, "SPREAD") == ("large", "small", "tiny")


# ---- what gangs that are given back make room for


def test_what_is_given_back_is_what_was_held_on_nodes_that_stay() -> None:
    groups = {
        "here": group("CREATED", one=("a", {"CPU": 2.0}), two=("b", {"CPU": 1.0, "GPU": 1.0})),
        "gone": group("REMOVED", one=("a", {"CPU": 2.0})),
        "drained": group("CREATED", one=("c", {"CPU": 4.0})),
    }
    nodes = [node("a", CPU=4), node("b", CPU=4)]
    assert given_back(nodes, groups, ["here", "gone", "drained", "nobody's"]) == {"CPU": 3.0, "GPU": 1.0}
    assert given_back(nodes, groups, []) == {}


@pytest.mark.parametrize(
    ("cpus", "placement", "returned", "fits"),
    [
        (2, "PACK", ["idle"], False),  # 1 CPU is free on each node, and 2 come back on one of them.
        (2, "PACK", ["idle", "busy"], True),
        (1, "PACK", [], True),
        (1, "STRICT_PACK", [], False),
        (1, "STRICT_PACK", ["idle"], True),
        (2, "STRICT_PACK", ["idle", "busy"], False),
    ],
)
def test_a_gang_fits_where_nodes_hold_it_not_their_sum(
    monkeypatch: pytest.MonkeyPatch, cpus: int, placement: str, returned: list[str], fits: bool
) -> None:
    """Two nodes of 3 CPUs, a gang of one worker of 2 CPUs on each; one of two workers is asked for."""
    groups = {
        "idle": group("CREATED", one=("a", {"CPU": 2.0})),
        "busy": group("CREATED", one=("b", {"CPU": 2.0})),
    }
    nodes = [{**node(name, CPU=3), "Labels": {}} for name in "ab"]
    monkeypatch.setattr(room, "placement_group_table", lambda: groups)
    monkeypatch.setattr(room.ray, "nodes", lambda: nodes)
    monkeypatch.setattr(room.ray, "available_resources", lambda: {"CPU": 2.0})
    scaling = ScalingConfig(num_workers=2, resources_per_worker={"CPU": cpus}, placement_strategy=placement)
    assert Room(scaling, print).for_another(1, 1, returned) == fits
