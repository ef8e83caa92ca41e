"""Placement: workers that each node can hold, and gangs that they make; pure."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

SLACK = 1e-6
"""Ray counts in ten-thousandths, and sums of fractions are not exact."""


def places(nodes: Iterable[Mapping[str, Any]], need: Mapping[str, float]) -> dict[str, int]:
    """How many workers each node holds when nothing else runs on it.

    Args:
        nodes: as `ray.nodes()` gives them; those that are not alive hold nothing.
        need: what a worker needs.
    """
    return {node["NodeID"]: how_many(node["Resources"], need) for node in nodes if node["Alive"]}


def free_places(
    nodes: Iterable[Mapping[str, Any]], groups: Mapping[str, Mapping[str, Any]], need: Mapping[str, float]
) -> dict[str, int]:
    """How many workers each node holds beside the placement groups on it.

    What runs outside of placement groups is not seen: compare what the whole cluster has free as well.

    Args:
        nodes: as `ray.nodes()` gives them.
        groups: as `ray.util.placement_group_table()` gives them.
        need: what a worker needs.
    """
    free = {node["NodeID"]: dict(node["Resources"]) for node in nodes if node["Alive"]}
    for group in groups.values():
        if group["state"] == "REMOVED":  # It is told of as long as the job that made it runs.
            continue
        for bundle, node in group["bundles_to_node_id"].items():
            for name, amount in group["bundles"][bundle].items() if node in free else ():
                free[node][name] = free[node].get(name, 0.0) - amount
    return {node: how_many(left, need) for node, left in free.items()}


def given_back(
    nodes: Iterable[Mapping[str, Any]], groups: Mapping[str, Mapping[str, Any]], returned: Collection[str]
) -> dict[str, float]:
    """The resources that free up on all nodes together once some placement groups are gone.

    Args:
        nodes: as `ray.nodes()` gives them; what is held on others does not count.
        groups: as `ray.util.placement_group_table()` gives them.
        returned: those that go; one that is not there has nothing to give back.
    """
    there = {node["NodeID"] for node in nodes if node["Alive"]}
    back: dict[str, float] = {}
    for group in (groups[name] for name in returned if name in groups and groups[name]["state"] != "REMOVED"):
        for bundle, node in group["bundles_to_node_id"].items():
            for name, amount in group["bundles"][bundle].items() if node in there else ():
                back[name] = back.get(name, 0.0) + amount
    return back


def has_labels(node: Mapping[str, Any], selector: Mapping[str, str] | None) -> bool:
    """Whether a node is one of those that a label selector of Ray's allows.

    Args:
        node: as `ray.nodes()` gives it.
        selector: by label: a value, "in(VALUE, ...)", or either with "!" before it, which a node without the label
            fulfils; None allows all.
    """
    labels = node["Labels"]
    for label, condition in (selector or {}).items():
        wanted = condition.removeprefix("!")
        values = wanted[len("in(") : -1].split(",") if wanted.startswith("in(") else [wanted]
        if (labels.get(label) in [value.strip() for value in values]) == condition.startswith("!"):
            return False
    return True


def gangs_that_fit(places: Sequence[int], workers: int, placement: str) -> int:
    """How many gangs fit.

    Args:
        places: workers that each node holds.
        workers: of a gang.
        placement: Ray's word for how a gang is laid over nodes. STRICT_PACK keeps it on one node, STRICT_SPREAD no two
            of its workers on one; PACK and SPREAD are wishes.
    """
    if placement == "STRICT_PACK":
        return sum(count // workers for count in places)
    if placement == "STRICT_SPREAD":
        gangs = sum(places) // workers
        # A node takes one worker of each gang, so `gangs` of them use at most so many of its places.
        while sum(min(count, gangs) for count in places) < gangs * workers:
            gangs -= 1
        return gangs
    return sum(places) // workers


def lay(
    free: Mapping[str, Mapping[str, float]], need: Mapping[str, float], workers: int, placement: str
) -> tuple[str, ...] | None:
    """A node for each worker of a gang, much as Ray would choose them; None where the gang does not fit.

    Args:
        free: what each node has left.
        need: what a worker needs.
        workers: of the gang.
        placement: as for `gangs_that_fit`, which says of the same room whether there is any.
    """
    counts = {node: count for node in sorted(free) if (count := how_many(free[node], need))}
    if gangs_that_fit(list(counts.values()), workers, placement) == 0:
        return None
    roomiest = sorted(counts, key=lambda node: -counts[node])
    if placement.endswith("SPREAD"):
        rounds = [node for turn in range(max(counts.values())) for node in roomiest if counts[node] > turn]
        return tuple(rounds[:workers])
    # The tightest node that holds all, so that what needs a large one still finds it; else as few as there can be.
    tightest = [node for node in reversed(roomiest) if counts[node] >= workers]
    return tuple([node for node in tightest[:1] or roomiest for _ in range(counts[node])][:workers])


def how_many(resources: Mapping[str, float], need: Mapping[str, float]) -> int:
    """How many workers of one need a node with these resources holds."""
    return max(0, math.floor(min(resources.get(name, 0.0) / amount for name, amount in need.items()) + SLACK))
