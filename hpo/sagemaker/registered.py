"""A job's best model in MLflow's registry, and the act that says so in the record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from hpo.observers import Callback
from hpo.record import Store
from hpo.text import masked
from trainers.errors import WarmbandError

if TYPE_CHECKING:
    from hpo.trackers import Registered


def register_trial(
    store: str | None, job: str, trial_id: str, load: Callable[[], Any], name: str, tracking_uri: str | None
) -> Registered:
    """Registers the model of a trial; a new version is an act of the record.

    Args:
        store: database URL of the record; None is the default one.
        job: the job's name.
        trial_id: the trial.
        load: loads its model.
        name: what the registry calls it.
        tracking_uri: as `hpo.trackers.register` takes it.

    Raises:
        ConfigurationError, WarmbandError: as `hpo.trackers.register` does.
    """
    from hpo.trackers import Lineage, register

    with Store(store) as record:
        row, trials = record.job(job), record.trials(job)
        trial = next(each for each in trials if each.trial_id == trial_id)
        lineage = Lineage(
            job=job,
            created_at=row.created_at,
            trial=trial.trial_id,
            resource=trial.resource,
            seed=row.spec["random_seed"],
            hyperparameters={**row.spec["estimator"]["hyperparameters"], **trial.hyperparameters},
            metric=row.spec["objective_metric_name"],
            value=trial.objective,
            data={key: str(each.get("fingerprint", "")) for key, each in row.spec["inputs"].items()},
            environment=row.spec.get("environment") or {},
        )
        made = register(load, lineage, name, tracking_uri)
        if made.new:
            where = {"tracking_uri": masked(tracking_uri)} if tracking_uri else {}
            record.act(job, "registered", {"model": name, "version": made.version, "trial": trial.trial_id, **where})
    return made


def register_where_asked(
    callbacks: Sequence[Callback], register: Callable[[str, str | None], Registered], say: Callable[[str], None]
) -> None:
    """Registers the model of a job that has ended where a tracker asks for it; a job is no worse where that fails.

    Args:
        callbacks: of the job, its trackers among them.
        register: makes the version, of the model's name and the tracking URI.
        say: is told what came of it.
    """
    from hpo.trackers import MLflow

    for tracker in callbacks:
        if not isinstance(tracker, MLflow) or tracker.register_as is None:
            continue
        try:
            made = register(tracker.register_as, tracker.tracking_uri)
        except WarmbandError as error:
            say(f"warning: no model is registered as {tracker.register_as!r}: {error}; hpo register does so later")
        else:
            say(f"{'Registered' if made.new else 'Registered before:'} {made.uri}")
