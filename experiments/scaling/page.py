"""The page of `experiments.scale_out`: the blog's first table beside our measurements, and pictures."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from experiments.scaling.measured import IMAGE, XGBOOST, Measured, result, verdict
from experiments.scaling.shard_models import WithoutSharing
from experiments.scaling.tables import speed_up
from experiments.shared import pictures
from experiments.shared.blog import FIRST, QUALITY_ASIDE, SOURCE
from experiments.shared.scores import Scores
from hpo.report import Column, Figure, Measured as Value, Page, Section, Table, Text, look
from hpo.text import count
from hpo.uncertainty import standard_error
from trainers import Channel
from trainers.datasets import Dataset, Rows

PROBLEMS = {IMAGE: "images", XGBOOST: "marketing"}
MODELS = {IMAGE: "network, 128-64-10 units", XGBOOST: "XGBoost"}
METRICS = {"accuracy": "accuracy", "auc": "AUC"}
COLOURS = (look.GREY, look.BEST, look.BLUE, look.GREEN, look.VIOLET)


def page(measured: Mapping[str, Measured], data: Mapping[str, Dataset], apart: WithoutSharing) -> Page:
    """The page of one run.

    Args:
        measured: the rows, by name.
        data: the datasets, by problem.
        apart: XGBoost without shared histograms.
    """
    by_problem = {problem: [each for each in measured.values() if each.row.problem == problem] for problem in data}
    seeds = max(len(each.trainings) for each in measured.values())
    faster = speed_up(result(measured, data[XGBOOST], apart)["rows"], os.cpu_count() or 1)
    return Page(
        title="Scaling out",
        verdict=verdict(measured, data[XGBOOST]),
        subtitle=f"{' and '.join(dataset.title for dataset in data.values())}; {count(seeds, 'seed')}",
        sections=[
            Section("The table", [table(measured), Text(faster), _trained(by_problem, data)]),
            *(_problem(problem, rows) for problem, rows in by_problem.items()),
            _drop(measured, data[XGBOOST], apart),
        ],
    )


def table(measured: Mapping[str, Measured]) -> Table:
    """The blog's first table, with standard errors and the blog's own figures."""
    seeds = max(len(each.trainings) for each in measured.values())
    of_seeds = ["validation, s.e. over seeds", "test, s.e. over seeds"] if seeds > 1 else []
    columns: list[Column | str] = [
        *("problem", "workers", "distribution"),
        *(Column(which, digits=4) for which in ("validation, last", "validation, best", "test")),
        *(Column(title, digits=4) for title in of_seeds),
        *(Column("the blog's", digits=2), Column("its minutes", digits=0)),
        *(Column("training, s", digits=1), Column("work of a worker, s", digits=1), Column("billed, s", digits=0)),
    ]
    rows = []
    for each in measured.values():
        row = each.row
        last, test = each.last("validation"), each.last("test")
        rows.append(
            [
                *(PROBLEMS[row.problem], row.trainer.workers, row.distribution),
                *(_value(scores) for scores in (last, each.best("validation"), test)),
                *(scores and scores.seed_error for scores in ((last, test) if of_seeds else ())),
                *((blog.score, blog.minutes) if (blog := FIRST.get(row.name)) else (None, None)),
                *(each.mean("training_seconds"), each.work, each.mean("worker_seconds")),
            ]
        )
    caption = (
        "Scores are means over seeds; the error beside each is that of one score from the rows it was measured on. The "
        "best validation score is chosen among all epochs or rounds by the rows that it is measured on, and so is a "
        "little too good. The work of a worker is in processor seconds, for its share of the rows, trained alone. "
        "Billed are the seconds of all workers, from the moment they are held. The blog's validation scores and "
        f"minutes: {SOURCE}."
    )
    return Table(columns=columns, rows=rows, caption=caption)


def _trained(by_problem: Mapping[str, Sequence[Measured]], data: Mapping[str, Dataset]) -> Table:
    """What all settings of a problem have in common."""
    rows = [
        [
            *(PROBLEMS[problem], MODELS[problem], data[problem].title, len(_labels(data[problem].train))),
            *(METRICS[of[0].row.metric], of[0].row.length),
        ]
        for problem, of in by_problem.items()
    ]
    columns = ["problem", "model", "data", "rows", "metric", "trained for"]
    return Table(columns, rows, caption="What was trained, in all settings of a problem:")


def _value(scores: Scores | None) -> Value | str:
    return "diverged" if scores is None else Value(scores.mean, scores.row_error)


def _problem(problem: str, rows: Sequence[Measured]) -> Section:
    """Pictures of one model's settings."""
    metric = METRICS[rows[0].row.metric]
    labels = [each.row.label for each in rows]
    dots = [
        pictures.Dot(label=each.row.label, value=scores.mean, error=scores.error, colour=colour)
        for each, colour in zip(rows, COLOURS, strict=False)
        if (scores := each.last("test")) is not None
    ]
    of = "over seeds" if len(rows[0].trainings) > 1 else "of the rows that it was measured on"
    lines = [
        pictures.Line(
            label=each.row.label, curves=[training.curves["validation"] for training in each.trained], colour=colour
        )
        for each, colour in zip(rows, COLOURS, strict=False)
    ]
    blocks: list[Figure | Text] = [
        pictures.scores(
            f"{problem}-scores",
            f"Test {metric} of each setting",
            f"After the last {rows[0].row.trainer.unit}; a line is two standard errors {of} to either side.",
            dots,
            f"test {metric}",
            {"one worker": dots[0].value} if dots else {},
        ),
        pictures.learning(
            f"{problem}-learning",
            f"How each setting learns: validation {metric}",
            "A line is the mean over seeds, in a band from the least to the most of them. Of lines that coincide, the "
            "last is seen.",
            lines,
            rows[0].row.trainer.unit,
            f"validation {metric}",
        ),
        pictures.bars(
            f"{problem}-cost",
            "What each setting takes: time, and worker-seconds",
            "Training leaves out the start of workers; billed worker-seconds hold it.",
            labels,
            {
                "training, seconds": [each.mean("training_seconds") for each in rows],
                "billed, worker-seconds": [each.mean("worker_seconds") for each in rows],
            },
        ),
    ]
    titles = {IMAGE: "The image model", XGBOOST: "XGBoost"}
    return Section(titles[problem], blocks)


def _drop(measured: Mapping[str, Measured], dataset: Dataset, apart: WithoutSharing) -> Section:
    """What could have made the blog's drop, each measured."""
    one, three = measured["xgboost-1"], measured["xgboost-3-allreduce"]
    error = standard_error("auc", apart.whole, _labels(dataset.validation))
    rows: list[list[object]] = [
        ["all rows, one model", Value(apart.whole, error)],
        *([f"the rows of worker {rank} alone", Value(auc, error)] for rank, auc in enumerate(apart.alone)),
        ["the mean of these models' predictions", Value(apart.averaged, error)],
        ["all rows, one model, its AUC averaged over workers' parts of the validation rows", apart.mean_of_parts],
        ["1 worker against 3: largest difference of a round", most_apart(one, three)],
    ]
    columns: list[Column | str] = ["XGBoost, each row once", Column("validation AUC", digits=4)]
    return Section("Why the blog's drop does not come out", [Text(no_drop(measured, apart)), Table(columns, rows)])


def no_drop(measured: Mapping[str, Measured], apart: WithoutSharing) -> str:
    """What the runs say of the blog's drop."""
    one, three = measured["xgboost-1"], measured["xgboost-3-allreduce"]
    most, published = most_apart(one, three), FIRST["xgboost-3-allreduce"].score
    close = "the same to four digits" if most < 5e-5 else f"never more than {most:.4f} apart"
    least = min(*apart.alone, apart.averaged, apart.mean_of_parts)
    near = least <= published + 2 * (three.errors["validation"] or 0.0)
    comes = (
        f"The least of these, {least:.4f}, comes near the published figure" if near else f"None comes near {published}"
    )
    return (
        f"The blog has {FIRST['xgboost-1'].score} on one instance and {published} on three. "
        f"{QUALITY_ASIDE} Here the validation AUCs of one "
        f"worker and of three are {close}, round for round: XGBoost sums the histograms of all workers' rows before it "
        "chooses a split, so that the trees are the same up to rounding. Workers that shared nothing would come to "
        f"{min(apart.alone):.4f} to {max(apart.alone):.4f} each, on their own rows, and to {apart.averaged:.4f} with "
        f"their predictions averaged, where one model of all rows comes to {apart.whole:.4f}. An AUC that is averaged "
        f"over the workers' parts of the validation rows would be {apart.mean_of_parts:.4f}. {comes}."
    )


def most_apart(one: Measured, other: Measured) -> float:
    """The largest difference of two settings' validation scores in any round of the same seed."""
    return max(
        (
            abs(a - b)
            for first, second in zip(one.trainings, other.trainings, strict=True)
            for a, b in zip(first.curves.get("validation", ()), second.curves.get("validation", ()), strict=False)
        ),
        default=math.nan,
    )


def _labels(rows: Rows) -> NDArray[np.float32]:
    return Channel.of(rows).read_whole().labels
