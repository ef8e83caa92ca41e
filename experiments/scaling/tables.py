"""The tables of `experiments.scale_out` as text, from its result.json."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.shared.benchmark import markdown
from experiments.shared.blog import FIRST, NOTEBOOK
from hpo.report import with_error
from hpo.text import count

COLUMNS = (
    *("", "workers", "distribution", "validation", "best", "test", "the blog's", "its minutes"),
    *("training, s", "work of a worker, s", "billed, s"),
)
"""The best is the best epoch's or round's score, a work is in processor seconds, and billed are worker-seconds."""


def cells(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The rows of the table, as text, from what result.json holds."""
    made = []
    for row in result["rows"]:
        blog = row["blog"] or {"score": "", "minutes": ""}
        scores = [_score(row[of]) for of in ("validation", "best_validation", "test")]
        spent = [_seconds(row[of]) for of in ("training_seconds", "work_seconds")]
        setting = (row["row"].partition("-")[0], str(row["workers"]), row["distribution"])
        made.append(
            (*setting, *scores, str(blog["score"]), str(blog["minutes"]), *spent, _seconds(row["worker_seconds"], 0))
        )
    return made


def short(result: Mapping[str, Any]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Columns and rows for a terminal: those that fit one."""
    columns = ("", "workers", "validation", "the blog's", "s", "work, s", "billed")
    rows = [
        (f"{model}, {how}", workers, score, blog, *spent)
        for model, workers, how, score, _, _, blog, _, *spent in cells(result)
    ]
    return columns, rows


def tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/background/benchmarks.md, by name, from result.json."""
    apart = result["without_sharing_histograms"]
    best = next(row["best_validation"] for row in result["rows"] if row["row"] == "xgboost-1")
    without = [
        ("all rows, one model", _figure(apart["whole"])),
        *((f"the rows of worker {rank} alone", _figure(auc)) for rank, auc in enumerate(apart["alone"])),
        ("the mean of these models' predictions", _figure(apart["averaged"])),
        ("one model, its AUC averaged over workers' parts of the validation rows", _figure(apart["mean_of_parts"])),
        ("one model, the best of its rounds", _score(best)),
        *((f"the blog's, {count(n, 'instance')}, in its notebook", f"{auc:.3f}") for n, auc in NOTEBOOK.items()),
    ]
    return {
        "verdict": result["verdict"],
        "speed_up": speed_up(result["rows"], result["machine"]["cores"]),
        "settings": markdown(COLUMNS, cells(result)),
        "apart": markdown(("XGBoost, one seed", "validation AUC"), without),
    }


def speed_up(rows: Sequence[Mapping[str, Any]], cores: int) -> str:
    """How much faster several workers are, by the wall clock and by their work, beside what the blog reports.

    Args:
        rows: of result.json.
        cores: of the machine that ran them.
    """
    said = []
    by_name = {row["row"]: row for row in rows}
    for model, one, several in (
        ("The network", "image-1", "image-4-async"),
        ("XGBoost", "xgboost-1", "xgboost-3-allreduce"),
    ):
        alone, shared = by_name[one], by_name[several]
        before, after = FIRST[one].minutes, FIRST[several].minutes
        wall = _times(alone["training_seconds"], shared["training_seconds"])
        work = _times(alone["work_seconds"], shared["work_seconds"])
        said.append(
            f"{model}: in the blog {before} minutes on one instance and {after} on {shared['workers']}, "
            f"{before / after:.1f} times faster; here {wall} by the wall clock, and {work} by the "
            "processor seconds of a worker."
        )
    most = max(row["workers"] for row in rows)
    if cores < most:
        said.append(
            f"Up to {most} workers share {cores} cores here, so that by the wall clock a speed-up that is almost "
            "linear cannot come out; the processor seconds of a worker leave out what workers have to tell each other."
        )
    return " ".join(said)


def _times(one: float | None, other: float | None) -> str:
    """Nothing to compare where a training diverged."""
    if one is None or other is None or not (one > 0 and other > 0):
        return "without a figure"
    return f"{one / other:.1f} times"


def _score(scores: Mapping[str, Any] | None) -> str:
    """With its standard error over seeds, or else from the rows that it was measured on."""
    if scores is None:
        return "diverged"
    over_seeds, of_rows = scores["standard_error_over_seeds"], scores["standard_error_of_rows"]
    return with_error(scores["mean"], of_rows if over_seeds is None else over_seeds, 4)


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4f}"


def _seconds(value: float | None, digits: int = 1) -> str:
    """Nothing where a training diverged."""
    return "" if value is None or math.isnan(value) else f"{value:.{digits}f}"
