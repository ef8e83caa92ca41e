"""A job's best model in MLflow's registry, and the act that says so in the record."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hpo.record import Store
from hpo.sagemaker.analytics import tuned_trials
from hpo.text import masked

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
        row, trials = record.job(job), tuned_trials(record, job)
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
