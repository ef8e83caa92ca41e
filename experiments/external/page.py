"""The tables of docs/background/benchmarks.md that `experiments.external_memory` makes."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from experiments.shared.benchmark import markdown, promised


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of one part's result."""
    made = {"promises": promised(result["targets"])}
    if "runs" in result:
        made["runs"] = _runs(result)
    if "turns" in result:
        made["turns"] = _turns(result)
    if "jobs" in result:
        made["jobs"] = _jobs(result)
    return made


def _runs(result: Mapping[str, Any]) -> str:
    columns = ("features", "limit of a worker", "AUC", "a worker held at most", "rounds a second", "the whole training")
    lines = []
    for run in result["runs"]:
        way = "on disk" if run["external"] else "in memory"
        limit = f"{run['limit'] / 1e9:g} GB" if run["limit"] else "none"
        if "error" in run:
            lines.append((way, limit, "none: the kernel ended the workers", "", "", ""))
            continue
        figures = (f"{max(run['most']) / 1e9:.2f} GB", f"{run['rounds_a_second']:.2f}", f"{run['seconds']:.0f} s")
        lines.append((way, limit, f"{run['auc']:.6f}", *figures))
    return markdown(columns, lines)


def _turns(result: Mapping[str, Any]) -> str:
    columns = ("features", "rounds a second, median", "least to most", "AUC")
    return markdown(
        columns,
        [
            (
                way,
                f"{statistics.median(rates):.2f}",
                f"{min(rates):.2f} to {max(rates):.2f}",
                f"{result['auc'][way]:.6f}",
            )
            for way, rates in result["turns"].items()
        ],
    )


def _jobs(result: Mapping[str, Any]) -> str:
    columns = (
        "features",
        "worker of a gang of",
        "trials",
        "before its rows came",
        "first quarter",
        "last quarter",
        "most",
    )
    return markdown(
        columns,
        [
            (
                "on disk" if job["external"] else "in memory",
                str(each["gang"]),
                str(each["trials"]),
                *(f"{each[name] / 1e6:.0f} MB" for name in ("before", "first", "last", "most")),
            )
            for job in result["jobs"]
            for each in job["workers"]
        ],
    )
