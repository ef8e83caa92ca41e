"""Clusters and needs of gangs, drawn by Hypothesis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hypothesis import strategies as st

NEEDS = ({"CPU": 1.0}, {"CPU": 2.0}, {"CPU": 3.0}, {"CPU": 1.0, "GPU": 1.0}, {"GPU": 0.5})
PLACEMENTS = ("PACK", "SPREAD", "STRICT_PACK", "STRICT_SPREAD")
Nodes = dict[str, dict[str, float]]


@st.composite
def clusters(draw: st.DrawFn) -> Nodes:
    sizes = draw(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 2)), min_size=1, max_size=4))
    return {f"node{number}": {"CPU": float(cpus), "GPU": float(gpus)} for number, (cpus, gpus) in enumerate(sizes)}


def take(left: Nodes, need: Mapping[str, float], nodes: Sequence[str], sign: int = -1) -> None:
    for node in nodes:
        for name, amount in need.items():
            left[node][name] = left[node].get(name, 0.0) + sign * amount
