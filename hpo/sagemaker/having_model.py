"""What is done with a job's model: it is deployed, predicts files, and goes to a registry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpo.sagemaker.registered import register_trial
from trainers.errors import ConfigurationError
from trainers.trainer import Trainer

if TYPE_CHECKING:
    from hpo.endpoints import Predictor
    from hpo.trackers import Registered


class HasModel:
    """A job that has a model."""

    _store: str | None

    def _model_of(self, training_job_name: str | None) -> tuple[str, str, Trainer]:
        """The job's name, the trial's, and the trainer that has its model."""
        raise NotImplementedError

    def deploy(
        self,
        initial_instance_count: int = 1,
        instance_type: str | None = None,
        *,
        endpoint_name: str | None = None,
        training_job_name: str | None = None,
        model_fn: Callable[[Any], Any] | str | None = None,
        cpus: float = 1.0,
        max_batch_size: int = 64,
        port: int = 8000,
    ) -> Predictor:
        """Serves the model with Ray Serve, and waits until it answers.

        It runs on the cluster that this process has joined, or that `RAY_ADDRESS` names, and stays there; without one
        Ray is started here, and the endpoint ends with this process. An endpoint of the same name is replaced.

        Args:
            initial_instance_count: replicas; one that dies is replaced.
            instance_type: not used: replicas run where the cluster has room.
            endpoint_name: letters, digits and hyphens; None is the job's name.
            training_job_name: the trial; None is the best.
            model_fn: for PyTorch and programs, makes what predicts of `best_estimator().model()`: see
                `hpo.endpoints.scorer_of`.
            cpus: of a replica.
            max_batch_size: requests that a replica predicts together at most.
            port: of the cluster's HTTP proxy, on 127.0.0.1.

        Raises:
            ConfigurationError: an argument is wrong, there is no model, or Ray Serve is not installed.
            WarmbandError: the endpoint does not come up.
        """
        from hpo import endpoints
        from hpo.record import Store

        job, trial, estimator = self._model_of(training_job_name)
        name = job if endpoint_name is None else endpoint_name
        endpoints.check_place(name, initial_instance_count, cpus, max_batch_size)
        url = endpoints.deploy(
            endpoints.scorer_of(estimator, model_fn, self._trained_on(job)),
            name,
            about={"endpoint": name, "job": job, "trial": trial},
            replicas=initial_instance_count,
            cpus=cpus,
            batch=max_batch_size,
            port=port,
        )
        told = {"endpoint": name, "trial": trial, "url": url, "replicas": initial_instance_count}
        with Store(self._store) as store:
            store.act(job, "deployed", told)
        return endpoints.Predictor(name, url, partial(delete_endpoint, name, store=self._store))

    def deployable(
        self, training_job_name: str | None = None, model_fn: Callable[[Any], Any] | str | None = None
    ) -> str:
        """Checks that there is a model that `deploy` can serve.

        Args:
            training_job_name: the trial; None is the best.
            model_fn: as of `deploy`.

        Returns:
            The trial whose model it is.

        Raises:
            ConfigurationError, WarmbandError: there is none.
        """
        from hpo import endpoints

        _, trial, estimator = self._model_of(training_job_name)
        endpoints.scorer_of(estimator, model_fn)
        return trial

    def predict(
        self,
        files: Sequence[str | Path],
        out: str | Path,
        *,
        training_job_name: str | None = None,
        model_fn: Callable[[Any], Any] | str | None = None,
        workers: int = 0,
    ) -> int:
        """Predicts the rows of files in several processes, and writes a prediction a row; see `predict_files`.

        Args:
            files: .csv, .parquet, or of libsvm's format, for XGBoost.
            out: a .csv or .parquet file.
            training_job_name: the trial; None is the best.
            model_fn: as of `deploy`; here by its name, or a function of a module.
            workers: processes; 0 is one a core.

        Returns:
            How many rows there were.

        Raises:
            ConfigurationError, DataError, WarmbandError: as of `hpo.endpoints.predict_files`.
        """
        from hpo import endpoints

        job, _, estimator = self._model_of(training_job_name)
        trained_on = self._trained_on(job)
        scorer = endpoints.scorer_of(estimator, model_fn, trained_on)
        return endpoints.predict_files(scorer, files, out, workers=workers, first_index=trained_on.get("first"))

    def _trained_on(self, job: str) -> dict[str, Any]:
        """The channel that a job trained on, as its record has it; empty where it had none."""
        from hpo.record import Store

        with Store(self._store) as store:
            found: dict[str, Any] = store.job(job).spec["inputs"].get("train", {})
        return found

    def register(
        self, model_name: str, tracking_uri: str | None = None, *, training_job_name: str | None = None
    ) -> Registered:
        """Makes the model a version in MLflow's registry of models, with what it came from as tags.

        Where the registry has a version of it already, that is returned, and no other made.

        Args:
            model_name: what the registry calls it.
            tracking_uri: the server, or a database such as "sqlite:///mlflow.db"; None is MLflow's own choice.
            training_job_name: the trial; None is the best.

        Raises:
            ConfigurationError: mlflow is not installed, the name is none, or the model of neither XGBoost nor PyTorch.
            WarmbandError: MLflow does not answer or refuses, or there is no model yet.
        """
        job, trial, estimator = self._model_of(training_job_name)
        return register_trial(self._store, job, trial, estimator.model, model_name, tracking_uri)


def delete_endpoint(name: str, *, store: str | None = None) -> None:
    """Ends an endpoint, on the cluster that this process has joined or that `RAY_ADDRESS` names, and in the record.

    Args:
        name: the endpoint's.
        store: database URL of the record; None is the default one.

    Raises:
        ConfigurationError: neither the record nor the cluster has it.
    """
    from hpo import endpoints
    from hpo.record import Store

    with Store(store) as opened:
        found, ran = endpoints.deployed(opened, name), endpoints.delete(name)
        if not found and not ran:
            known = ", ".join(one.name for one in endpoints.deployed(opened)) or "none"
            raise ConfigurationError(f"there is no endpoint named {name!r}; the record has {known}")
        for one in found:
            opened.act(one.job, "undeployed", {"endpoint": name, "ran": ran})
