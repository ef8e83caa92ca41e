"""A job as a study of Optuna, for optuna-dashboard."""

from __future__ import annotations

import json
import math
import warnings
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from hpo.export.columns import as_json
from hpo.ranges import CategoricalParameter, IntegerParameter, ParameterRange, range_from_json
from hpo.record import JobRow, ReportRow, Store, TrialRow, best_trial, encode, is_training, objective, status_and_reason
from hpo.text import masked
from trainers.errors import ConfigurationError, WarmbandError

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.storages import BaseStorage, RDBStorage
    from optuna.study import Study
    from optuna.trial import FrozenTrial, TrialState


def to_optuna(name: str, storage: str | BaseStorage, *, store: str | None = None) -> Study:
    """Writes a job's tuned trials as a study of the job's name: distributions, values, curves and attributes.

    A trial that ran to its end is COMPLETE, one that was stopped before, or left when its job ended, PRUNED, one that
    failed or diverged FAIL, and one that is under way RUNNING. The best of those that ended is COMPLETE in any case,
    since Optuna looks for its best among those alone. User attributes say what the status was, and more.

    Args:
        name: the job, running or not.
        storage: where to: a URL that Optuna takes, such as "sqlite:///study.db", or a storage of Optuna's.
        store: database URL of the record; None is the one that is found by itself.

    Raises:
        ConfigurationError: there is no such job, the storage cannot be opened, or it has a study of that name.
        WarmbandError: the study cannot be written; nothing of it stays.
    """
    import optuna

    with Store(store) as opened:
        reports, billed = opened.reports(name), _billed(opened, name)
        job, trials = opened.job(name), opened.trials(name)
    if is_training(job):
        raise ConfigurationError(
            f"job {name!r} is a single training, and no search that Optuna has a study for; export it as parquet or csv"
        )
    where, target = _opened(storage)
    study = _created(job, where, target)
    try:
        for key, value in _about_job(job, trials).items():
            study.set_user_attr(key, encode(value))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            study.set_metric_names([job.spec["objective_metric_name"]])
        frozen = _frozen(job, trials, reports, billed)
        if isinstance(target, optuna.storages.RDBStorage):
            _insert(target, target.get_study_id_from_name(name), frozen)
        else:
            study.add_trials(frozen)
    except BaseException as error:
        with suppress(Exception):  # Where the database went away, the first error is the one to tell.
            optuna.delete_study(study_name=name, storage=target)
        if isinstance(error, sa.exc.SQLAlchemyError | optuna.exceptions.StorageInternalError):
            raise WarmbandError(f"the study {name!r} cannot be written to {where}: {masked(str(error))}") from error
        raise
    return optuna.load_study(study_name=name, storage=target)


def distributions(ranges: Mapping[str, ParameterRange]) -> dict[str, BaseDistribution]:
    """The ranges in Optuna's form.

    Reverse-logarithmic scaling becomes a linear one there, steps of logarithmic scaling any number, and a normal
    distribution its bounds.
    """
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    by_name: dict[str, BaseDistribution] = {}
    for name, bounds in ranges.items():
        if isinstance(bounds, CategoricalParameter):
            by_name[name] = CategoricalDistribution([_choice(bounds, value) for value in bounds.values])
            continue
        kind: type[Any] = IntDistribution if isinstance(bounds, IntegerParameter) else FloatDistribution
        log = bounds.resolved_scaling == "Logarithmic"
        step = {} if log or bounds.step is None else {"step": bounds.step}
        by_name[name] = kind(bounds.min_value, bounds.max_value, log=log, **step)
    return by_name


def _choice(bounds: CategoricalParameter, value: Any) -> Any:
    """A value, or its JSON where Optuna could not tell it from another: to it, 1, 1.0 and true are one."""
    distinct = all(one != other for k, one in enumerate(bounds.values) for other in bounds.values[:k])
    return value if distinct else as_json(value)


def _opened(storage: str | BaseStorage) -> tuple[str, BaseStorage]:
    """A storage and its name for messages, the name first."""
    import optuna

    if not isinstance(storage, str):
        return type(storage).__name__, storage
    if "://" not in storage:
        raise ConfigurationError(f"{storage!r} is not a storage's URL; give one such as 'sqlite:///{storage}'")
    where = masked(storage)
    try:
        _check_free(storage, where)
        return where, optuna.storages.RDBStorage(storage)
    except ConfigurationError:
        raise
    except (ImportError, ValueError, RuntimeError, sa.exc.SQLAlchemyError, optuna.exceptions.OptunaError) as error:
        raise ConfigurationError(
            f"Optuna's storage {where} cannot be opened: {masked(str(error).splitlines()[0])}; give a URL that Optuna "
            "takes, such as 'sqlite:///study.db'"
        ) from error


def _check_free(storage: str, where: str) -> None:
    """Refuses a database whose tables are in Optuna's way, such as that of a record of jobs."""
    engine = sa.create_engine(storage)
    try:
        names = sa.inspect(engine).get_table_names()
    finally:
        engine.dispose()
    if "trials" in names and "studies" not in names:
        raise ConfigurationError(
            f"{where} has tables of another program, perhaps the record of your jobs; give Optuna a database of its own"
        )


def _created(job: JobRow, where: str, storage: BaseStorage) -> Study:
    import optuna

    directions = optuna.study.StudyDirection
    try:
        return optuna.create_study(
            study_name=job.name,
            storage=storage,
            direction=directions.MAXIMIZE if job.spec["objective_type"] == "Maximize" else directions.MINIMIZE,
        )
    except optuna.exceptions.DuplicatedStudyError:
        raise ConfigurationError(
            f"a study named {job.name!r} is already in {where}; give another storage, or delete that study with: "
            f"optuna delete-study --study-name {job.name} --storage {where}"
        ) from None


def _about_job(job: JobRow, trials: Sequence[TrialRow]) -> dict[str, Any]:
    status, reason = status_and_reason(job)
    untuned = next((trial for trial in trials if trial.number < 0), None)
    best = best_trial(job, [trial for trial in trials if trial.number >= 0])
    return {
        "status": status,
        **({"reason": reason} if reason else {}),
        "strategy": job.spec["strategy"],
        "objective_value": job.spec["objective_value"],
        "random_seed": job.spec["random_seed"],
        "hyperparameters": job.spec["estimator"]["hyperparameters"],
        **({"best_trial": best.trial_id} if best else {}),
        **({"untuned": objective(job, untuned)} if untuned else {}),
        **{key: job.summary[key] for key in ("worker_seconds", "cost") if job.summary.get(key)},
    }


def _frozen(
    job: JobRow, trials: Sequence[TrialRow], reports: Sequence[ReportRow], billed: Mapping[str, float]
) -> list[FrozenTrial]:
    """The tuned trials, in the order of suggestion, which is Optuna's numbering."""
    from optuna.trial import TrialState, create_trial

    ranges = {name: range_from_json(state) for name, state in job.spec["hyperparameter_ranges"].items()}
    spaces = distributions(ranges)
    curves: dict[str, dict[int, float]] = defaultdict(dict)
    last: dict[str, dict[str, Any]] = {}
    for report in reports:
        value = report.metrics.get(job.spec["objective_metric_name"], math.nan)
        curves[report.trial_id][report.step] = math.nan if value is None else float(value)
        last[report.trial_id] = report.metrics
    tuned = [trial for trial in trials if trial.number >= 0]
    ends = _ends(job, tuned)
    best = best_trial(job, [trial for trial in tuned if trial.trial_id in ends])
    frozen = []
    for trial in tuned:
        state = TrialState.COMPLETE if trial is best else _state(trial, trial.trial_id in ends)
        params = {
            name: _choice(bounds, trial.hyperparameters[name])
            if isinstance(bounds, CategoricalParameter)
            else trial.hyperparameters[name]
            for name, bounds in ranges.items()
            if name in trial.hyperparameters or not bounds.when
        }
        made = create_trial(
            state=state,
            value=objective(job, trial) if state in (TrialState.COMPLETE, TrialState.PRUNED) else None,
            params=params,
            distributions={name: spaces[name] for name in params},
            user_attrs=encode(_about_trial(trial, last.get(trial.trial_id, {}), billed.get(trial.trial_id, 0.0))),
            intermediate_values=curves[trial.trial_id],
        )
        end = ends.get(trial.trial_id)
        made.datetime_start = _local(end if trial.started_at is None else trial.started_at)
        made.datetime_complete = _local(end)
        frozen.append(made)
    return frozen


def _ends(job: JobRow, trials: Sequence[TrialRow]) -> dict[str, float]:
    """When each trial ended that did, in unix seconds: with its job at the latest, also where that broke off."""
    over = status_and_reason(job)[0] not in ("InProgress", "Stopping")
    last = (job.heard if job.ended_at is None else job.ended_at) if over else None
    ends = {trial.trial_id: last if trial.ended_at is None else trial.ended_at for trial in trials}
    return {name: end for name, end in ends.items() if end is not None}


def _state(trial: TrialRow, ended: bool) -> TrialState:
    from optuna.trial import TrialState

    if trial.status in ("Failed", "Diverged"):
        return TrialState.FAIL
    if not ended:
        return TrialState.RUNNING
    done = trial.status == "Completed" and trial.objective is not None
    return TrialState.COMPLETE if done else TrialState.PRUNED


def _about_trial(trial: TrialRow, metrics: Mapping[str, Any], billed: float) -> dict[str, Any]:
    return {
        **metrics,
        "trial_id": trial.trial_id,
        "status": trial.status,
        "bracket": trial.bracket,
        "resource": trial.resource,
        "best_objective": trial.best_objective,
        "worker_seconds": billed,
        **({"believed": encode(trial.believed)} if trial.believed else {}),
        **({"stopped_by": trial.stopped_by} if trial.stopped else {}),
        **({"failure": trial.failure_reason} if trial.failure_reason else {}),
        **({"checkpoint": trial.checkpoint} if trial.checkpoint else {}),
    }


def _billed(store: Store, name: str) -> dict[str, float]:
    billed: dict[str, float] = defaultdict(float)
    for (trial, _), seconds in store.billed(name).items():
        billed[trial] += seconds
    return billed


def _local(seconds: float | None) -> datetime | None:
    """Unix seconds as Optuna keeps times: this machine's, without a zone."""
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).astimezone().replace(tzinfo=None)


def _insert(storage: RDBStorage, study_id: int, trials: Sequence[FrozenTrial]) -> None:
    """Writes trials in one transaction, a statement a table.

    Optuna's own way asks the database several times for each value: 100 trials of 100 values take it a minute.
    """
    if not trials:
        return
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    tables = sa.MetaData()
    with storage.engine.begin() as connection:
        for kind in ("trials", "trial_params", "trial_values", "trial_intermediate_values", "trial_user_attributes"):
            sa.Table(kind, tables, autoload_with=connection)
        table = tables.tables["trials"]
        head = [
            {
                "study_id": study_id,
                "number": number,
                "state": trial.state.name,
                "datetime_start": trial.datetime_start,
                "datetime_complete": trial.datetime_complete,
            }
            for number, trial in enumerate(trials)
        ]
        connection.execute(sa.insert(table), head)
        asked = sa.select(table.c.trial_id).where(table.c.study_id == study_id).order_by(table.c.number)
        for key, trial in zip(connection.scalars(asked), trials, strict=True):
            for kind, row in _rows(trial):
                rows[kind].append({"trial_id": key, **row})
        for kind, values in rows.items():
            connection.execute(sa.insert(tables.tables[kind]), values)


def _rows(trial: FrozenTrial) -> list[tuple[str, dict[str, Any]]]:
    """A trial's rows, by table, as Optuna's storage writes them."""
    from optuna.distributions import distribution_to_json

    rows: list[tuple[str, dict[str, Any]]] = []
    for name, space in trial.distributions.items():
        value = space.to_internal_repr(trial.params[name])
        row = {"param_name": name, "param_value": value, "distribution_json": distribution_to_json(space)}
        rows.append(("trial_params", row))
    if trial.value is not None:
        rows.append(("trial_values", {"objective": 0, "value": trial.value, "value_type": "FINITE"}))
    for step, value in trial.intermediate_values.items():
        kind = "NAN" if math.isnan(value) else "FINITE" if math.isfinite(value) else "INF_" + ("POS", "NEG")[value < 0]
        stored = value if kind == "FINITE" else None
        row = {"step": step, "intermediate_value": stored, "intermediate_value_type": kind}
        rows.append(("trial_intermediate_values", row))
    rows += [
        ("trial_user_attributes", {"key": key, "value_json": json.dumps(value)})
        for key, value in trial.user_attrs.items()
    ]
    return rows
