"""Reader of recorded curves: from a file of one row a unit, or from an earlier job of the record."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hpo.ranges import CategoricalParameter, ParameterRange
from hpo.record import LedgerRow, Store
from hpo.simulation.curves import Curves, RecordedCurve
from hpo.text import count, enumerated
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("trial", "unit", "seconds", "value")
"""Columns of a curve file beside one a tuned hyperparameter; docs/simulating.md says what they hold."""

SUFFIXES = (".csv", ".parquet", ".npz")
_EMPTY = object()
"""Stands for a cell of a hyperparameter whose condition is not met."""

JOB = "job:"
"""What a job of the record begins with where curves are named."""


def open_curves(where: str, ranges: Mapping[str, ParameterRange], metric: str, store: str | None = None) -> Curves:
    """Reads recorded curves.

    Args:
        where: a file, or "job:NAME" for a job of the record.
        ranges: of the search; the curves have to be of the same hyperparameters.
        metric: the search's objective, which a job has to have been tuned for.
        store: database URL of the record; None is the one that is found by itself.

    Raises:
        ConfigurationError: there are no such curves, they are not whole, or they are of another search.
    """
    if where.startswith(JOB):
        return _of_job(where.removeprefix(JOB), ranges, metric, store)
    return Curves(Path(where).name, ranges, _rows(_table(Path(where)), where, ranges))


# ---- files


def _table(path: Path) -> pd.DataFrame:
    """A file's rows, whatever they mean."""
    import pandas as pd

    if path.suffix not in SUFFIXES:
        raise ConfigurationError(f"curves {str(path)!r} end in {path.suffix!r}; give {', '.join(SUFFIXES)} or job:NAME")
    try:
        if path.suffix == ".csv":
            _check_lines(path)
            return pd.read_csv(path)
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        with np.load(path, allow_pickle=False) as arrays:
            return pd.DataFrame({name: arrays[name] for name in arrays.files})
    except ConfigurationError:
        raise
    except Exception as error:  # Of many types: zipfile's, pyarrow's, pandas', NumPy's.
        raise ConfigurationError(
            f"curves {str(path)!r} cannot be read: {error}; give a whole file of columns {', '.join(COLUMNS)} and one "
            "a hyperparameter"
        ) from error


def _check_lines(path: Path) -> None:
    """Refuses a line with fewer cells than the first, which pandas would fill up."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        width = len(next(lines, []))
        for cells in lines:
            if cells and len(cells) != width:
                raise ConfigurationError(
                    f"curves {str(path)!r} have {count(len(cells), 'cell')} in line {lines.line_num}, and {width} in "
                    "the first; the file may have been cut, give the whole one"
                )


def _rows(table: pd.DataFrame, where: str, ranges: Mapping[str, ParameterRange]) -> Iterator[RecordedCurve]:
    """A file's curves, in the order in which they come up."""
    _check_columns(table, where, ranges)
    for name in COLUMNS[1:]:
        table[name] = _numbers(table[name], where, name)
    for name in ("trial", "unit", "seconds"):
        if table[name].isna().any():
            line = int(table[name].isna().to_numpy().argmax())
            raise ConfigurationError(f"curves {where!r} have no {name} in row {line}, from 0; give one")
    for trial, rows in table.groupby("trial", sort=False):
        curve = rows.sort_values("unit", kind="stable")
        about = f"curves {where!r}: trial {trial!r}"
        units, seconds = curve["unit"].to_numpy(float), curve["seconds"].to_numpy(float)
        if (wrong := units != np.arange(1, len(units) + 1)).any():
            place = int(wrong.argmax())
            raise ConfigurationError(
                f"{about} has unit {units[place]:g} where {place + 1} is due; give every unit from 1 on, once"
            )
        if not np.isfinite(seconds).all() or (np.diff(seconds, prepend=0.0) < 0).any():
            raise ConfigurationError(f"{about} has seconds that fall or are not finite; give those since its start")
        for name in ranges:
            if curve[name].nunique(dropna=False) > 1:
                raise ConfigurationError(f"{about} has several values of {name}; give one a trial")
        first = curve.iloc[0]
        yield RecordedCurve(
            configuration={
                name: value
                for name, bounds in ranges.items()
                if (value := _typed(bounds, first[name], f"{about}: {name}")) is not _EMPTY
            },
            values=curve["value"].to_numpy(float).tolist(),
            seconds=seconds.tolist(),
        )


def _check_columns(table: pd.DataFrame, where: str, ranges: Mapping[str, ParameterRange]) -> None:
    if taken := [name for name in ranges if name in COLUMNS]:
        raise ConfigurationError(
            f"the job tunes {enumerated(taken)}, which names another column of curves {where!r}; take the curves of a "
            "job of the record, job:NAME"
        )
    if missing := [name for name in (*COLUMNS, *ranges) if name not in table]:
        raise ConfigurationError(
            f"curves {where!r} have no column {enumerated(missing)}; give {', '.join(COLUMNS)} and one a tuned "
            "hyperparameter"
        )
    if others := [str(name) for name in table if name not in COLUMNS and name not in ranges]:
        raise ConfigurationError(
            f"curves {where!r} have {enumerated(others)}, which the job does not tune; give the job a range for each, "
            "or leave the column out where it has one value"
        )
    if table.empty:
        raise ConfigurationError(f"curves {where!r} have no row; give one a trial and unit")


def _numbers(column: pd.Series[Any], where: str, name: str) -> pd.Series[Any]:
    import pandas as pd

    try:
        return pd.to_numeric(column).astype(float)
    except (ValueError, TypeError) as error:
        raise ConfigurationError(f"curves {where!r} have a {name} that is no number: {error}; give numbers") from error


def _typed(bounds: ParameterRange, value: Any, about: str) -> Any:
    """A cell as a value of its range's type; a category that the range does not have stays as it is.

    An empty one is no value of a range with a condition.
    """
    plain = value.item() if isinstance(value, np.generic) else value
    empty = plain is None or (isinstance(plain, float) and math.isnan(plain))
    if empty and bounds.when and not bounds.is_valid(None):
        return _EMPTY
    if isinstance(bounds, CategoricalParameter):
        plain = None if isinstance(plain, float) and math.isnan(plain) else plain
        return next((each for each in _readings(plain) if bounds.is_valid(each)), plain)
    try:
        return bounds.cast_to_type(plain)
    except ConfigurationError as error:
        raise ConfigurationError(f"{about}: {error}") from error


def _readings(value: Any) -> Iterator[Any]:
    """A cell, and as what else it may be meant: files do not tell 1, 1.0 and "1" apart."""
    yield value
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value == value // 1:
            yield int(value)
        yield float(value)
        yield str(value)


# ---- jobs of the record


def _of_job(name: str, ranges: Mapping[str, ParameterRange], metric: str, url: str | None) -> Curves:
    """An earlier job's trials, without those that failed: a trial's units all took its mean seconds of training."""
    with Store(url) as store:
        job, trials, reports, ledger = store.job(name), store.trials(name), store.reports(name), store.ledger(name)
    own, tuned = job.spec["hyperparameter_ranges"].keys(), ranges.keys()
    if own != tuned:
        raise ConfigurationError(
            f"job {name!r} tuned {enumerated(sorted(own))}, and this one tunes {enumerated(sorted(tuned))}; give a job "
            "with the same hyperparameters"
        )
    if (other := job.spec["objective_metric_name"]) != metric:
        raise ConfigurationError(
            f"job {name!r} was tuned for {other!r}, and this one for {metric!r}; give one for that"
        )
    values: dict[str, list[float]] = defaultdict(list)
    for report in sorted(reports, key=lambda report: report.step):
        values[report.trial_id].append(math.nan if report.objective is None else report.objective)
    training, starting = _training(ledger), _starting(ledger)
    units = {trial.trial_id: len(values[trial.trial_id]) for trial in trials}
    mean = sum(training.values()) / max(1, sum(units[trial] for trial in training if trial in units))
    recorded = []
    for trial in trials:
        if trial.number < 0 or trial.status == "Failed" or not values[trial.trial_id]:
            continue
        curve = values[trial.trial_id]
        if trial.status == "Diverged" and math.isfinite(curve[-1]):
            curve.append(math.nan)
        pace = training[trial.trial_id] / len(curve) if trial.trial_id in training else mean
        seconds = [pace * unit for unit in range(1, len(curve) + 1)]
        recorded.append(RecordedCurve(configuration=trial.hyperparameters, values=curve, seconds=seconds))
    if not recorded:
        raise ConfigurationError(f"job {name!r} has no trial that reported {metric!r}; give one that trained")
    return Curves(f"job {name}", ranges, recorded, start_seconds=starting)


def _training(ledger: list[LedgerRow]) -> dict[str, float]:
    """Seconds that gangs trained each trial."""
    seconds: dict[str, float] = defaultdict(float)
    for row in ledger:
        if row.trial_id and row.kind in ("training", "checkpointing"):
            seconds[row.trial_id] += row.worker_seconds / max(1, row.workers)
    return dict(seconds)


def _starting(ledger: list[LedgerRow]) -> float:
    """Mean seconds of a gang's start."""
    seconds: dict[str, float] = defaultdict(float)
    for row in ledger:
        seconds[row.gang] += row.worker_seconds / max(1, row.workers) if row.kind == "starting" else 0.0
    return sum(seconds.values()) / max(1, len(seconds))
