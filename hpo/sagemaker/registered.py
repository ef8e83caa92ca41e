"""A job's best model in MLflow's registry, and the act that says so in the record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpo.record import Store
from hpo.sagemaker.analytics import tuned_trials
from hpo.sagemaker.deploying import Deployable
from hpo.text import masked

if TYPE_CHECKING:
    from hpo.trackers import Registered


class Registrable(Deployable):
    """A job whose model can be registered."""

    def register(self, model_name: str, tracking_uri: str | None = None) -> Registered:
        """Makes the model a version in MLflow's registry of models, with what it came from as tags.

        Where the registry has a version of it already, that is returned, and no other made. A new one is an act in the
        record.

        Args:
            model_name: what the registry calls it.
            tracking_uri: the server, or a database such as "sqlite:///mlflow.db"; None is MLflow's own choice.

        Raises:
            ConfigurationError: mlflow is not installed, the name is none, or the model of neither XGBoost nor PyTorch.
            WarmbandError: MLflow does not answer or refuses, or there is no model yet.
        """
        from hpo.trackers import Lineage, register

        job, asked, trainer = self._model_of(None)
        with Store(self._store) as store:
            row = store.job(job)
            trial = next(each for each in tuned_trials(store, job) if asked in (each.trial_id, each.job))
            lineage = Lineage(
                job=job,
                created_at=row.created_at,
                trial=trial.trial_id,
                resource=trial.resource,
                seed=row.spec["random_seed"],
                hyperparameters={**row.spec["estimator"]["hyperparameters"], **trial.hyperparameters},
                metric=row.spec["objective_metric_name"],
                value=trial.objective,
                data={name: str(each.get("fingerprint", "")) for name, each in row.spec["inputs"].items()},
                environment=row.spec.get("environment") or {},
            )
            made = register(trainer.model, lineage, model_name, tracking_uri)
            if made.new:
                where = {"tracking_uri": masked(tracking_uri)} if tracking_uri else {}
                told = {"model": model_name, "version": made.version, "trial": trial.trial_id, **where}
                store.act(job, "registered", told)
        return made
