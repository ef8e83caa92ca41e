"""Commands that use a job's model: predict files, register it, deploy it, list endpoints and end one."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Annotated, Optional

import typer

from hpo.cli.options import AllowCode, AsJson, JobName, StoreUrl

Trial = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="ID", help="The trial whose model it is; else the best."),
]
ModelFn = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        metavar="MODULE:NAME",
        help="For PyTorch and programs: the function that makes what predicts of what the trial saved.",
    ),
]


def predict(
    name: JobName,
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILES...", help="Rows: .csv with a heading, .parquet, .libsvm."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="Where predictions go: .csv or .parquet.")],
    trial: Trial = None,
    model_fn: ModelFn = None,
    workers: Annotated[int, typer.Option(min=0, metavar="N", help="Processes; 0 is one a core.")] = 0,
    store: StoreUrl = None,
    allow_code: AllowCode = False,
) -> None:
    """Predict the rows of files with a job's model, in several processes.

    A line a row, in the rows' order. Columns are found by their names, and
    others left alone. The file is there whole or not at all.
    """
    from hpo.cli.terminal import show
    from hpo.text import count
    from hpo.tuner import attached

    _check_code(model_fn, allow_code=allow_code)
    job = attached(name, store, allow_code=allow_code)
    rows = job.predict(files, out, training_job_name=trial, model_fn=model_fn, workers=workers)
    show(f"Wrote {count(rows, 'prediction')} to {out}")


def deploy(
    name: JobName,
    endpoint: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--name", metavar="NAME", help="The endpoint's name; else the job's."),
    ] = None,
    replicas: Annotated[int, typer.Option(min=1, metavar="N", help="Processes that predict.")] = 1,
    cpus: Annotated[float, typer.Option(metavar="N", help="CPUs of each.")] = 1.0,
    port: Annotated[int, typer.Option(min=1, max=65535, metavar="N", help="The HTTP proxy's, on 127.0.0.1.")] = 8000,
    trial: Trial = None,
    model_fn: ModelFn = None,
    store: StoreUrl = None,
    allow_code: AllowCode = False,
) -> None:
    """Serve a job's model with Ray Serve.

    On the cluster that RAY_ADDRESS names it stays until hpo undeploy.
    Without one Ray is started here, and the endpoint ends with Ctrl-C.
    """
    from hpo.cli.terminal import show
    from hpo.tuner import attached

    _check_code(model_fn, allow_code=allow_code)
    job = attached(name, store, allow_code=allow_code)
    predictor = job.deploy(
        replicas,
        endpoint_name=endpoint,
        training_job_name=trial,
        model_fn=model_fn,
        cpus=cpus,
        port=port,
    )
    show(f"Endpoint {predictor.endpoint_name} answers: POST {predictor.url}/invocations")
    if os.environ.get("RAY_ADDRESS"):
        show(f"End it with: hpo undeploy {predictor.endpoint_name}")
        return
    show("Ctrl-C ends it.")
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: ended.set())
    try:
        while not ended.wait(3600):
            pass
    except KeyboardInterrupt:
        pass
    predictor.delete_endpoint()


def endpoints(store: StoreUrl = None, as_json: AsJson = False) -> None:
    """List the endpoints that were deployed and not ended.

    With RAY_ADDRESS, what Ray Serve says of each on that cluster too, and
    of what it serves beside them: of deleted jobs, and of other records.
    """
    from dataclasses import asdict, fields

    from hpo.cli.terminal import show, show_json
    from hpo.endpoints import Endpoint, deployed, states
    from hpo.record import Store
    from trainers.errors import WarmbandError

    with Store(store) as opened:
        found = deployed(opened)
    told, asked = dict[str, str](), bool(os.environ.get("RAY_ADDRESS"))
    try:
        told = states() if asked else {}
    except WarmbandError as error:  # What the record has is shown all the same.
        asked = False
        typer.echo(f"warning: the cluster is not asked: {error}", err=True)
    others = {name: state for name, state in told.items() if name not in [one.name for one in found]}
    if as_json:
        unknown = dict.fromkeys(each.name for each in fields(Endpoint))
        show_json(
            [{**asdict(one), "state": told.get(one.name)} for one in found]
            + [{**unknown, "name": name, "state": state} for name, state in others.items()]
        )
        return
    for one in found:
        state = f", {told.get(one.name, 'not on this cluster')}" if asked else ""
        show(f"{one.name}: {one.trial} at {one.url}, deployed by {one.by}{state}")
    for name, state in others.items():
        show(f"{name}: of no job in this record, {state}")
    if not found and not others:
        show("No endpoints. To deploy a job's best model: hpo deploy NAME")


def undeploy(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The endpoint's name.")], store: StoreUrl = None
) -> None:
    """End an endpoint, on the cluster that RAY_ADDRESS names."""
    from hpo.cli.terminal import show
    from hpo.sagemaker import delete_endpoint

    delete_endpoint(name, store=store)
    show(f"Ended endpoint {name}")


def register(
    name: JobName,
    model: Annotated[str, typer.Option(metavar="MODEL", help="What the registry calls the model.")],
    tracking_uri: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(metavar="URI", help="MLflow's server or database; else its own choice, by MLFLOW_TRACKING_URI."),
    ] = None,
    trial: Trial = None,
    store: StoreUrl = None,
    allow_code: AllowCode = False,
    as_json: AsJson = False,
) -> None:
    """Register a job's model in MLflow, with what it came from.

    The version's tags say job, trial, seed, metric, hyperparameters, data
    and commit. A model that is registered already keeps its version.
    """
    from hpo.cli.terminal import show, show_json
    from hpo.text import masked
    from hpo.tuner import attached

    made = attached(name, store, allow_code=allow_code).register(model, tracking_uri, training_job_name=trial)
    if as_json:
        show_json(made.to_json())
        return
    show(
        f"{'Registered' if made.new else 'Registered before:'} {made.uri}"
        + (f" in {masked(tracking_uri)}" if tracking_uri else "")
    )


def _check_code(model_fn: str | None, *, allow_code: bool) -> None:
    from trainers.errors import ConfigurationError

    if model_fn is not None and not allow_code:
        raise ConfigurationError(f"--model-fn {model_fn} is Python code; run it with --allow-code")
