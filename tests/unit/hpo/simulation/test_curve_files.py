"""Curve files and jobs of the record as curves: what is read, and one error for each mistake."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from hpo.ranges import CategoricalParameter, ContinuousParameter, IntegerParameter
from hpo.record import JobRow, LedgerRow, ReportRow, Store, TrialRow
from hpo.simulation import Curves, open_curves
from tests.support.curves import RANGES, UNITS, frame, recorded, table
from tests.support.refusals import mentions, missing_names, refuses, refuses_each
from trainers import ConfigurationError

METRIC = "validation:auc"


def written(rows: pd.DataFrame, path: Path) -> Path:
    """Writes a file of the kind that its ending says."""
    if path.suffix == ".csv":
        rows.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        rows.to_parquet(path)
    else:
        np.savez(path, **{name: rows[name].to_numpy("U6" if name == "booster" else None) for name in rows})
    return path


def read(path: Path) -> Curves:
    return open_curves(str(path), RANGES, METRIC)


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
def test_a_file_of_any_kind_gives_the_same_curves(suffix: str, tmp_path: Path) -> None:
    shuffled = frame(recorded(20, diverged=3)).sample(frac=1, random_state=1).sort_values("trial", kind="stable")
    found, made = read(written(shuffled, tmp_path / f"curves{suffix}")), table(20, diverged=3)
    assert found.configurations == made.configurations
    np.testing.assert_array_equal(found.values, made.values)
    np.testing.assert_array_equal(found.seconds, made.seconds)
    assert list(found.diverged_at) == [3] * 3 + [UNITS + 1] * 17


def test_categories_keep_their_types(tmp_path: Path) -> None:
    path = tmp_path / "curves.csv"
    path.write_text("trial,unit,seconds,value,size,bias\na,1,1,0.5,64,true\nb,1,1,0.6,128,false\nc,1,1,0.7,,true\n")
    ranges = {"size": CategoricalParameter([64, 128, None]), "bias": CategoricalParameter([True, False])}
    assert open_curves(str(path), ranges, METRIC).configurations == [
        {"size": 64, "bias": True},
        {"size": 128, "bias": False},
        {"size": None, "bias": True},
    ]


def test_a_cell_without_a_value_is_a_hyperparameter_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "curves.csv"
    path.write_text(
        "trial,unit,seconds,value,optimizer,layers,momentum\n"
        "a,1,1,0.5,sgd,2,0.5\nb,1,1,0.6,adam,3,\nc,1,1,0.7,adam,1,0.9\nd,1,1,0.7,sgd,1,\n"
    )
    ranges = {
        "optimizer": CategoricalParameter(["sgd", "adam"]),
        "momentum": ContinuousParameter(0, 1, when={"optimizer": ["sgd"]}),
        "layers": IntegerParameter(1, 3, when={"optimizer": ["adam"]}),
    }
    curves = open_curves(str(path), ranges, METRIC)
    assert curves.configurations == [
        {"optimizer": "sgd", "momentum": 0.5},
        {"optimizer": "adam", "layers": 3},
        {"optimizer": "adam", "layers": 1},
    ]
    assert curves.left_out == 1  # The last has no momentum.
    assert [curves.nearest(each) for each in curves.configurations] == [0, 1, 2]


@pytest.mark.parametrize("values", [[1, 2], [1.0, 2.0], ["1", "2"], [True, False]])
def test_what_a_file_cannot_tell_is_read_as_the_range_has_it(values: list[Any], tmp_path: Path) -> None:
    path = tmp_path / "curves.csv"
    cells = [str(value) for value in values]
    path.write_text(f"trial,unit,seconds,value,size\na,1,1,0.5,{cells[0]}\nb,1,1,0.6,{cells[1]}\n")
    found = open_curves(str(path), {"size": CategoricalParameter(values)}, METRIC).configurations
    assert [repr(each["size"]) for each in found] == [repr(value) for value in values]


def test_a_hyperparameter_named_as_a_column_is_refused(tmp_path: Path) -> None:
    path = written(frame(recorded(4)), tmp_path / "curves.csv")
    with refuses(ConfigurationError, field="unit", value="curves.csv", remedy="job:NAME"):
        open_curves(str(path), {**RANGES, "unit": ContinuousParameter(0, 1)}, METRIC)


def changed(column: str, row: int, value: Any) -> Callable[[pd.DataFrame], pd.DataFrame]:
    def change(rows: pd.DataFrame) -> pd.DataFrame:
        rows[column] = rows[column].astype(object)
        rows.loc[row, column] = value
        return rows

    return change


MISTAKES: dict[str, tuple[Callable[[pd.DataFrame], pd.DataFrame], tuple[object, ...]]] = {
    "a column is missing": (lambda rows: rows.drop(columns="seconds"), ("seconds", "trial", "unit", "value")),
    "columns are missing": (lambda rows: rows.drop(columns=["unit", "eta"]), ("unit", "eta")),
    "another hyperparameter": (lambda rows: rows.assign(gamma=1.0), ("gamma", "range")),
    "no row": (lambda rows: rows.iloc[:0], ("row", "trial", "unit")),
    "a unit twice": (lambda rows: pd.concat([rows, rows.iloc[-1:]]), ("trial", 3, "unit", 9, 10)),
    "a unit is missing": (lambda rows: rows.drop(index=4), ("trial", 0, "unit", 6, 5)),
    "time goes back": (changed("seconds", 4, 1.0), ("trial", 0, "seconds", "finite")),
    "seconds are text": (changed("seconds", 4, "long"), ("seconds", "long", "number")),
    "a value is text": (changed("value", 4, "good"), ("value", "good", "number")),
    "a unit is empty": (changed("unit", 4, math.nan), ("unit", "row", 4)),
    "two values in a trial": (changed("eta", 4, 0.5), ("trial", 0, "eta")),
    "a number is text": (lambda rows: rows.assign(eta="large"), ("trial", 0, "eta", "'large'", "finite")),
    "no configuration within": (lambda rows: rows.assign(booster="linear"), ("configuration", "ranges", 4)),
}


def test_a_mistake_is_one_error_that_names_it(tmp_path: Path) -> None:
    def mistaken(mistake: str) -> Curves:
        (tmp_path / mistake).mkdir()
        change, _ = MISTAKES[mistake]
        return read(written(change(frame(recorded(4))), tmp_path / mistake / "curves.csv"))

    refuses_each(
        ((partial(mistaken, mistake), ("curves.csv", *names)) for mistake, (_, names) in MISTAKES.items()),
        ConfigurationError,
    )


@pytest.mark.parametrize(
    ("suffix", "found"), [(".csv", ("line 181", "6", "7")), (".parquet", "Parquet"), (".npz", "zip")]
)
def test_a_cut_file_is_refused(suffix: str, found: str | tuple[str, ...], tmp_path: Path) -> None:
    path = written(frame(recorded(20)), tmp_path / f"curves{suffix}")
    whole = path.read_bytes()
    end = whole.rindex(b",") if suffix == ".csv" else len(whole) // 2
    path.write_bytes(whole[:end])
    with refuses(ConfigurationError, field=str(path), remedy="whole") as raised:
        read(path)
    mentions(str(raised.value), *([found] if isinstance(found, str) else found))


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("none.csv", os.strerror(errno.ENOENT), ("trial", "unit", "seconds", "value")),
        ("curves.txt", "'.txt'", (".csv", ".parquet", ".npz", "job:NAME")),
    ],
)
def test_what_is_no_curve_file_is_refused(name: str, value: str, remedy: tuple[str, ...], tmp_path: Path) -> None:
    with refuses(ConfigurationError, field=name, value=value, remedy=remedy):
        read(tmp_path / name)


# ---- jobs of the record


def keep(store: Store, metric: str = METRIC) -> None:
    """A job of two workers: trials that completed, were stopped, diverged and failed."""
    bounds = {"eta": ContinuousParameter(0, 1).to_json()}
    spec = {"hyperparameter_ranges": bounds, "objective_metric_name": metric}
    store.create_job(JobRow(name="before", created_at=0.0, spec=spec))
    kinds = {"Completed": 4, "Stopped": 2, "Diverged": 1, "Failed": 3}
    with store.writer("before") as writer:
        for number, (status, units) in enumerate(kinds.items()):
            trial = f"before-{number:03d}"
            writer.trial(
                TrialRow(
                    job="before",
                    trial_id=trial,
                    number=number,
                    status=status,  # type: ignore[arg-type]
                    hyperparameters={"eta": number / 10},
                    resource=units,
                )
            )
            writer.report(
                *(
                    ReportRow(job="before", trial_id=trial, step=unit, objective=number + unit / 10, at=float(unit))
                    for unit in range(1, units + 1)
                )
            )
            writer.ledger(
                LedgerRow(
                    job="before",
                    trial_id=trial,
                    gang="gang0",
                    kind="training",
                    worker_seconds=2 * 3.0 * units,
                    at=1.0,
                    workers=2,
                )
            )
        writer.ledger(LedgerRow(job="before", gang="gang0", kind="starting", worker_seconds=14.0, at=0.0, workers=2))


def test_a_job_of_the_record_gives_its_trials_curves(home: Path) -> None:
    with Store() as store:
        keep(store)
    curves = open_curves("job:before", {"eta": ContinuousParameter(0, 1)}, METRIC)
    assert curves.configurations == [{"eta": 0.0}, {"eta": 0.1}, {"eta": 0.2}]
    np.testing.assert_allclose(curves.values[:2], [[0.1, 0.2, 0.3, 0.4], [1.1, 1.2, 1.2, 1.2]])
    np.testing.assert_allclose(curves.seconds[:2], [[0, 3, 6, 9, 12]] * 2)
    assert list(curves.diverged_at) == [5, 5, 2]
    assert curves.ended_early == 1
    assert curves.start_seconds == 7.0


@pytest.mark.parametrize(
    ("ranges", "metric", "had", "asked"),
    [
        ({"alpha": ContinuousParameter(0, 1)}, METRIC, "eta", "alpha"),
        ({"eta": ContinuousParameter(0, 1)}, "validation:error", "'validation:auc'", "'validation:error'"),
    ],
)
def test_a_job_of_another_search_is_refused(ranges: Any, metric: str, had: str, asked: str, home: Path) -> None:
    with Store() as store:
        keep(store)
    with refuses(ConfigurationError, field="'before'", value=had, remedy=asked):
        open_curves("job:before", ranges, metric)


ETA = {"eta": ContinuousParameter(0, 1)}


def keep_repeats(store: Store, trials: Sequence[tuple[Any, Sequence[float]]], *, repeats: int = 2) -> None:
    """A job of trials that took a second a unit, one after another's number."""
    spec = {"hyperparameter_ranges": {"eta": {}}, "objective_metric_name": METRIC, "repeats": repeats}
    store.create_job(JobRow(name="before", created_at=0.0, spec=spec))
    with store.writer("before") as writer:
        for number, (status, values) in enumerate(trials):
            trial, eta = f"before-{number:03d}", number // repeats / 10
            reason = "ValueError: no luck.\nmore" if status == "Failed" else ""
            writer.trial(
                TrialRow(
                    job="before",
                    trial_id=trial,
                    number=number,
                    status=status,
                    hyperparameters={"eta": eta},
                    failure_reason=reason,
                )
            )
            writer.report(
                *(
                    ReportRow(job="before", trial_id=trial, step=unit, objective=value, at=0.0)
                    for unit, value in enumerate(values, 1)
                )
            )
            seconds = (number + 1.0) * len(values)
            writer.ledger(
                LedgerRow(job="before", trial_id=trial, gang="g", kind="training", worker_seconds=seconds, at=0.0)
            )


def test_repeats_of_a_configuration_are_one_curve_their_mean(home: Path) -> None:
    trials = [
        *[("Completed", (0.1, 0.2, 0.3)), ("Completed", (0.3, 0.4, 0.7))],
        *[("Stopped", (0.2, 0.2)), ("Stopped", (0.4,))],  # The job was stopped while the second one trained.
        *[("Completed", (0.5, 0.6, 0.7)), ("Failed", (0.5,))],
        *[("Completed", (0.6, 0.7, 0.8)), ("Diverged", (0.8,))],
        *[("Diverged", (0.6, 0.7)), ("Stopped", (0.8,))],
        *[("Completed", (0.9, 0.9, 0.9)), ("Pending", ())],
        *[("Completed", (0.9, 0.9, 0.9))],
    ]
    with Store() as store:
        keep_repeats(store, trials)
    curves = open_curves("job:before", ETA, METRIC)
    assert [each["eta"] for each in curves.configurations] == [0.0, 0.1, 0.3, 0.4]
    np.testing.assert_allclose(curves.values[:2], [[0.2, 0.3, 0.5], [0.3, 0.3, 0.3]])
    np.testing.assert_allclose(curves.seconds[:2], [[0, 1.5, 3.0, 4.5], [0, 3.5, 7.0, 10.5]])
    assert list(curves.diverged_at) == [4, 4, 2, 2]
    mentions(curves.notes[0], 4, "before", 2)


ALL_FAILED = ("failed", "ValueError: no luck")


@pytest.mark.parametrize(
    ("trials", "repeats", "names"),
    [
        ([], 1, ("InProgress", METRIC, "wait")),
        ([("Running", ())], 1, ("InProgress", METRIC, "wait")),
        ([("Completed", (0.5,))], 2, ("configuration", "2", METRIC, "wait")),
        ([("Completed", (0.5,)), ("Failed", ())], 2, ("configuration", "2", METRIC)),
        ([("Failed", ())], 1, ALL_FAILED),
        ([("Failed", (0.5,)), ("Failed", ())], 1, ALL_FAILED),
    ],
)
def test_a_job_without_a_curve_is_one_error_that_says_why(
    trials: list[tuple[str, tuple[float, ...]]], repeats: int, names: tuple[str, ...], home: Path
) -> None:
    with Store() as store:
        keep_repeats(store, trials, repeats=repeats)
    with refuses(ConfigurationError, field="'before'", remedy=names):
        open_curves("job:before", ETA, METRIC)


def test_a_job_that_has_ended_without_a_curve_is_not_waited_for(home: Path) -> None:
    with Store() as store:
        keep_repeats(store, [], repeats=1)
        with store.writer("before") as writer:
            writer.job(status="Stopped", ended_at=1.0)
    with refuses(ConfigurationError, field="'before'", value="Stopped", remedy=METRIC) as raised:
        open_curves("job:before", ETA, METRIC)
    assert missing_names(str(raised.value), "wait") == ["wait"]


def test_a_job_that_is_not_there_is_refused(home: Path) -> None:
    with Store() as store:
        keep_repeats(store, [("Completed", (0.5,))], repeats=1)
    with refuses(ConfigurationError, field="warmband.db", value="'befor'", remedy="'before'"):
        open_curves("job:befor", ETA, METRIC)
