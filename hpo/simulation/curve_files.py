"""Reader of recorded curves: from a file of one row a unit, or from an earlier job of the record."""

from __future__ import annotations

import csv
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np

from hpo.ranges import CategoricalParameter, ParameterRange
from hpo.record import JobRow, LedgerRow, ReportRow, Store, TrialRow, repeats_of, status_and_reason
from hpo.simulation.curves import Curves, RecordedCurve
from hpo.strategies import mean
from hpo.text import count, enumerated, first_line
from trainers.errors import ConfigurationError

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("trial", "unit", "seconds", "value")
"""Columns of a curve file beside one a tuned hyperparameter; docs/guides/simulating.md says what they hold."""

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
    """An earlier job's configurations, without those of which a trial failed."""
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
    repeats = repeats_of(job)
    together: dict[int, list[RecordedCurve]] = defaultdict(list)
    for trial, curve in _of_trials(trials, reports, ledger):
        together[trial.number // repeats].append(curve)
    recorded = [_as_one(curves) for curves in together.values() if len(curves) == repeats]
    if not recorded:
        raise ConfigurationError(_without_curves(job, trials))
    title = f"job {name}" if repeats == 1 else f"job {name} (means of {repeats} trials each)"
    return Curves(title, ranges, recorded, start_seconds=_starting(ledger))


def _of_trials(
    trials: Iterable[TrialRow], reports: Iterable[ReportRow], ledger: Sequence[LedgerRow]
) -> Iterator[tuple[TrialRow, RecordedCurve]]:
    """The curves of trials that have one and did not fail: a trial's units all took its mean seconds of training."""
    values: dict[str, list[float]] = defaultdict(list)
    for report in sorted(reports, key=lambda report: report.step):
        values[report.trial_id].append(math.nan if report.objective is None else report.objective)
    training = _training(ledger)
    usual = sum(training.values()) / max(1, sum(len(values[trial]) for trial in training if trial in values))
    for trial in trials:
        if trial.number < 0 or trial.status == "Failed" or not values[trial.trial_id]:
            continue
        curve = list(values[trial.trial_id])
        if trial.status == "Diverged" and math.isfinite(curve[-1]):
            curve.append(math.nan)
        pace = training[trial.trial_id] / len(curve) if trial.trial_id in training else usual
        yield trial, RecordedCurve(configuration=trial.hyperparameters, values=curve, seconds=_steady(pace, len(curve)))


def _as_one(trials: Sequence[RecordedCurve]) -> RecordedCurve:
    """The mean of a configuration's trials, as far as all of them came; it has diverged where one of them had."""
    if len(trials) == 1:
        return trials[0]
    units = min(len(trial.values) for trial in trials)
    values = [mean(trial.values[unit] for trial in trials) for unit in range(units)]
    if math.isfinite(values[-1]) and not all(math.isfinite(trial.values[-1]) for trial in trials):
        values.append(math.nan)  # The others ended before the unit in which one diverged.
    pace = fmean(trial.seconds[-1] / len(trial.seconds) for trial in trials)
    return RecordedCurve(configuration=trials[0].configuration, values=values, seconds=_steady(pace, len(values)))


def _steady(pace: float, units: int) -> list[float]:
    """Seconds until the end of each unit, which all take the same."""
    return [pace * unit for unit in range(1, units + 1)]


def _without_curves(job: JobRow, trials: Iterable[TrialRow]) -> str:
    """Why a job gives no curve, and what would."""
    tuned, (status, _) = [trial for trial in trials if trial.number >= 0], status_and_reason(job)
    if tuned and all(trial.status == "Failed" for trial in tuned):
        first = first_line(tuned[0].failure_reason).rstrip(".")
        return f"all trials of job {job.name!r} failed, the first because: {first}; give a job whose trials trained"
    repeats, metric = repeats_of(job), job.spec["objective_metric_name"]
    whole = "no trial that" if repeats == 1 else f"no configuration all of whose {repeats} trials"
    wait = "wait until it has, or " if status in ("InProgress", "Stopping") else ""
    return f"job {job.name!r} is {status}, and has {whole} reported {metric!r}; {wait}give one that trained"


def _training(ledger: Iterable[LedgerRow]) -> dict[str, float]:
    """Seconds that gangs trained each trial."""
    seconds: dict[str, float] = defaultdict(float)
    for row in ledger:
        if row.trial_id and row.kind in ("training", "checkpointing"):
            seconds[row.trial_id] += row.worker_seconds / max(1, row.workers)
    return dict(seconds)


def _starting(ledger: Iterable[LedgerRow]) -> float:
    """Mean seconds of a gang's start."""
    seconds: dict[str, float] = defaultdict(float)
    for row in ledger:
        seconds[row.gang] += row.worker_seconds / max(1, row.workers) if row.kind == "starting" else 0.0
    return sum(seconds.values()) / max(1, len(seconds))
