"""MLflow's registry of models: a version for the best model of a job, with what it came from."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpo.record import encode
from hpo.text import first_line, masked
from hpo.trackers.mlflow import LONGEST_TAG, MOST_PARAMS, Keys, check_model_name, text
from trainers.deletion import temporary_folder
from trainers.errors import ConfigurationError, WarmbandError
from trainers.extras import check_extra

if TYPE_CHECKING:
    from mlflow import MlflowClient

_FOLDER = "model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """What a model came from.

    Args:
        job: the job's name.
        created_at: when that was made, in unix seconds: a name may have had another job before.
        trial: the trial's name.
        resource: units that the model was trained.
        seed: the job's.
        hyperparameters: static and tuned ones.
        metric: what trials are compared by; empty for a training that is compared with nothing.
        value: the trial's; None where it has none.
        data: fingerprints of the job's channels, by name.
        environment: versions and commit, as the record has them.
    """

    job: str
    created_at: float
    trial: str
    resource: int
    seed: int
    hyperparameters: Mapping[str, Any]
    metric: str
    value: float | None
    data: Mapping[str, str]
    environment: Mapping[str, Any]

    def identity(self) -> dict[str, str]:
        """The tags that a model is known by."""
        return {
            "warmband.job": self.job,
            "warmband.job_created_at": repr(self.created_at),
            "warmband.trial": self.trial,
            "warmband.resource": str(self.resource),
        }

    def tags(self) -> dict[str, str]:
        """All of it as tags."""
        more = {
            "warmband.seed": str(self.seed),
            "warmband.metric": self.metric,
            "warmband.value": "" if self.value is None else repr(self.value),
            "warmband.commit": str(self.environment.get("commit", "")),
            "warmband.version": str(self.environment.get("warmband", "")),
            "warmband.hyperparameters": json.dumps(encode(self.hyperparameters)),
            **{f"warmband.data.{name}": fingerprint for name, fingerprint in self.data.items()},
        }
        return {**self.identity(), **{key: value[:LONGEST_TAG] for key, value in more.items() if value}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A version of a model in MLflow's registry.

    Args:
        name: the model's.
        version: the version's number.
        run_id: the run that has its files and what it came from.
        new: whether it was made now; else it was there.
    """

    name: str
    version: int
    run_id: str
    new: bool

    @property
    def uri(self) -> str:
        """What MLflow loads it by."""
        return f"models:/{self.name}/{self.version}"

    def to_json(self) -> dict[str, Any]:
        """By name."""
        return {**asdict(self), "uri": self.uri}


def register(
    load: Callable[[], Any],
    lineage: Lineage,
    name: str,
    tracking_uri: str | None = None,
    experiment: str = "warmband",
) -> Registered:
    """Makes a version of a model in MLflow's registry; where that has one of the same trial, it stays the one.

    Args:
        load: loads the model: a Booster of XGBoost, or a Module of PyTorch.
        lineage: what it came from.
        name: what the registry calls it.
        tracking_uri: the server, or a database such as "sqlite:///mlflow.db"; None is MLflow's own choice.
        experiment: of the run that has the model's files; made where it is not there.

    Raises:
        ConfigurationError: mlflow is not installed, the name is none, or the model is of another kind.
        WarmbandError: MLflow does not answer, or refuses.
    """
    check_extra("MLflow's registry", "mlflow")
    check_model_name(name, "model_name")
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    for talkative in ("alembic", "mlflow.store.db.utils"):  # A page of lines where a database is new.
        logging.getLogger(talkative).setLevel(logging.WARNING)
    try:
        client = MlflowClient(tracking_uri=tracking_uri, registry_uri=tracking_uri)
        there = _version_of(client, lineage, name)
        return there or _made(client, load, lineage, name, experiment)
    except (MlflowException, OSError) as error:
        where = masked(tracking_uri) if tracking_uri else "MLflow"
        raise WarmbandError(
            f"model {name!r} cannot be registered in {where}: {masked(first_line(str(error)))}; check that the server "
            "is up, and that it has a registry"
        ) from error


def _version_of(client: MlflowClient, lineage: Lineage, name: str) -> Registered | None:
    """The version of the same trial that is there."""
    token = None
    while True:
        page = client.search_model_versions(f"name='{name}'", page_token=token)
        for each in page:
            if lineage.identity().items() <= each.tags.items():
                return Registered(name=name, version=int(each.version), run_id=each.run_id or "", new=False)
        if not (token := page.token):
            return None


def _made(client: MlflowClient, load: Callable[[], Any], lineage: Lineage, name: str, experiment: str) -> Registered:
    from mlflow.exceptions import MlflowException

    keys, tags = Keys(), lineage.tags()
    with temporary_folder() as folder:
        _save(load(), folder / _FOLDER)
        known = client.get_experiment_by_name(experiment)
        labels = {keys.key(key): value for key, value in tags.items()}
        run = client.create_run(
            known.experiment_id if known else client.create_experiment(experiment),
            start_time=int(time.time() * 1000),
            tags=labels,
            run_name=f"{lineage.trial} model",
        )
        run_id: str = run.info.run_id
        try:
            _log(client, run_id, lineage)
            client.log_artifacts(run_id, str(folder / _FOLDER), _FOLDER)
            try:
                client.create_registered_model(name)
            except MlflowException as error:
                if error.error_code != "RESOURCE_ALREADY_EXISTS":
                    raise
            source = f"{run.info.artifact_uri}/{_FOLDER}"
            made = client.create_model_version(name, source, run_id=run_id, tags=labels)
        except BaseException:
            client.set_terminated(run_id, "FAILED")
            raise
        client.set_terminated(run_id, "FINISHED")
    return Registered(name=name, version=int(made.version), run_id=run_id, new=True)


def _log(client: MlflowClient, run_id: str, lineage: Lineage) -> None:
    from mlflow.entities import Metric, Param

    keys = Keys()
    params = [Param(keys.key(key), text(value)) for key, value in lineage.hyperparameters.items()]
    for start in range(0, len(params), MOST_PARAMS):
        client.log_batch(run_id, params=params[start : start + MOST_PARAMS])
    if lineage.value is not None:
        value = Metric(Keys().key(lineage.metric), lineage.value, int(time.time() * 1000), lineage.resource)
        client.log_batch(run_id, metrics=[value])


def _save(model: Any, folder: Path) -> None:
    """Writes a model in the form of MLflow's flavor for its library.

    Raises:
        ConfigurationError: the registry has none for it.
    """
    library = next((each for each in ("xgboost", "torch") if _is_of(model, each)), None)
    if library is None:
        kind = f"{type(model).__module__}.{type(model).__qualname__}"
        raise ConfigurationError(
            f"the model is a {kind}; MLflow's registry takes models of XGBoost and PyTorch from here: register others "
            "with MLflow's own functions, as in mlflow.sklearn.log_model(model, registered_model_name=...)"
        )
    # What MLflow would find out by loading the model in a process of its own.
    needed = [f"{package}=={version(package)}" for package in (library, "numpy")]
    flavor = import_module(f"mlflow.{'xgboost' if library == 'xgboost' else 'pytorch'}")
    options = {} if library == "xgboost" else {"serialization_format": "pickle"}
    flavor.save_model(model, str(folder), pip_requirements=needed, **options)


def _is_of(model: Any, library: str) -> bool:
    if library == "xgboost":
        import xgboost

        return isinstance(model, xgboost.Booster)
    import torch

    return isinstance(model, torch.nn.Module)
