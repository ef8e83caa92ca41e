"""The `hpo` command: its subcommands and its exit codes."""

from __future__ import annotations

from typing import Annotated

import typer
from typer.core import TyperGroup

from hpo.cli import serving
from hpo.cli.commands import (
    check,
    data,
    db,
    export,
    files,
    logs,
    models,
    records,
    report,
    resume,
    simulate,
    submit,
    tuning,
)
from hpo.cli.options import Command, Group, SlowCommand
from trainers.loopback import on_loopback

# No module here imports Ray, pandas or a model library before a command needs it: --help answers at once.

EXIT_CODES = {
    0: "done; of describe and the like also where the job they show has failed",
    1: "the job failed, or the record cannot be read",
    2: "what was asked for is wrong: an option, a job file, a name, data",
    130: "Ctrl-C; the job is stopped and what it found is kept",
    143: "SIGTERM; likewise",
}

_CODES = "\n".join(f"{code:<5}{meaning}" for code, meaning in EXIT_CODES.items())

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog=f"[bold]To begin[/bold]\n$ hpo init\n$ hpo tune job.yaml\n$ hpo jobs\n\n[bold]Exit codes[/bold]\n{_CODES}",
)


def _add(name: str, function: object, *examples: str, slow: bool = False) -> None:
    """Add a command; a slow one loads Ray, and says so first."""
    shown = "\n".join(f"$ {example}" for example in examples)
    epilog = f"[bold]Examples[/bold]\n{shown}" if shown else None
    app.command(name, cls=SlowCommand if slow else Command, epilog=epilog)(function)  # type: ignore[type-var]


_add("init", files.init, "hpo init", "hpo init experiments/churn.yaml", "hpo init mnist.yaml --from train.py")
_add("import", files.import_, "hpo import sweep.yaml", "hpo import sweep.yaml --out job.yaml --units 30")
_add("check", check.check, "hpo check job.yaml", "hpo check job.yaml --allow-code --json", slow=True)
_add(
    "tune",
    tuning.tune,
    "hpo tune job.yaml",
    "hpo tune job.yaml --set tuning.max_jobs=60 --set trainer.num_workers=4",
    "hpo tune job.yaml --json > found.json",
    slow=True,
)
_add(
    "train",
    tuning.train,
    "hpo train job.yaml",
    "hpo train job.yaml --name churn-final --set trainer.hyperparameters.eta=0.1 --no-wait",
    slow=True,
)
_add(
    "forecast",
    simulate.forecast,
    "hpo forecast job.yaml",
    "hpo forecast job.yaml --set tuning.max_jobs=60 --json",
    slow=True,
)
_add(
    "simulate",
    simulate.simulate,
    "hpo simulate job.yaml --curves job:churn-1 --gangs 1,4,16",
    "hpo simulate job.yaml --curves curves.csv --strategy Random --strategy Hyperband --max-jobs 30,60 --json",
    slow=True,
)
_add(
    "submit",
    submit.submit,
    "hpo submit job.yaml --address http://HEAD:8265",
    "hpo submit job.yaml --name churn-2 --set tuning.max_jobs=60 --follow",
    slow=True,
)
_add("jobs", records.jobs, "hpo jobs", "hpo jobs --store postgresql://me@host/jobs")
_add("describe", records.describe, "hpo describe churn-1", "hpo describe churn-1 --json")
_add("trials", records.trials, "hpo trials churn-1", "hpo trials churn-1 --csv trials.csv")
_add("trials add", records.add_trial, "hpo trials add churn-1 --set eta=0.1 --set max_depth=3", slow=True)
_add("trials stop", records.stop_trial, "hpo trials stop churn-1 churn-1-003", slow=True)
_add("acts", records.acts, "hpo acts churn-1", "hpo acts --json")
_add(
    "report",
    report.report,
    "hpo report churn-1",
    "hpo report churn-1 churn-2 -o both.html --pictures pictures",
    slow=True,
)
_add(
    "export",
    export.export,
    "hpo export churn-1 --format parquet -o churn-1",
    "hpo export churn-1 --format optuna -o sqlite:///churn-1.db",
)
_add(
    "register",
    models.register,
    "hpo register churn-1 --model churn",
    "hpo register churn-1 --model churn --tracking-uri http://mlflow:5000 --json",
    slow=True,
)
_add("stop", records.stop, "hpo stop churn-1", "hpo stop churn-1 --wait 0", slow=True)
_add(
    "resume",
    resume.resume,
    "hpo resume churn-1",
    "hpo resume churn-1 --set tuning.max_jobs=60 --set cost.max_cost=20",
    "hpo resume churn-1 --data-dir /mnt/data --json",
    slow=True,
)
_add("logs", logs.logs, "hpo logs churn-1 --follow", "hpo logs churn-1 --tail 20", "hpo logs churn-1 --trial ID")
_add("delete", records.delete, "hpo delete churn-1", "hpo delete churn-1 --keep-files --yes", slow=True)
_add(
    "predict",
    models.predict,
    "hpo predict churn-1 new.csv --out predictions.csv",
    "hpo predict churn-1 a.parquet b.parquet -o p.parquet",
    slow=True,
)
_add("deploy", models.deploy, "hpo deploy churn-1", "hpo deploy churn-1 --name churn --replicas 2", slow=True)
_add("endpoints", models.endpoints, "hpo endpoints", "hpo endpoints --json")
_add("undeploy", models.undeploy, "hpo undeploy churn", slow=True)
_add("serve", serving.serve, "hpo serve", "hpo serve --port 8901 --store postgresql://me@host/jobs", slow=True)
_add("serve token", serving.token, "hpo serve token alice --rights act", "hpo serve token alice --remove")
_add("serve key", serving.key, "hpo serve key alice", "hpo serve key alice --remove")
_add("schema", files.schema, "hpo schema > job.schema.json")
app.add_typer(data.app, name="data")
app.add_typer(db.app, name="db")


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"hpo (warmband) {version('warmband')}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Tune models whose every trial is a distributed training run."""
    from hpo.record import acting

    context.with_resource(acting(door="command line"))


def root() -> TyperGroup:
    """The command as typer builds it."""
    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)
    return command


def main() -> None:
    """Runs the command, and exits with one of `EXIT_CODES`."""
    from hpo.cli.terminal import errors_in_words

    with errors_in_words(), on_loopback():
        app(prog_name="hpo")
