"""Options and arguments that several commands share."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Annotated, Any, Optional

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from hpo.cli.shell_completion import dataset_names, job_names

LOG_WIDTH = 100
"""Columns of what goes into the log of a Ray job, where people read it."""

# typer reads the annotations, and wants `Optional`.
JobName = Annotated[str, typer.Argument(metavar="NAME", help="The job's name.", autocompletion=job_names)]
DatasetName = Annotated[str, typer.Argument(metavar="NAME", help="The dataset.", autocompletion=dataset_names)]
StoreUrl = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        "--store", metavar="URL", help="The record's database; else WARMBAND_STORE, else a file in WARMBAND_HOME."
    ),
]
Overrides = Annotated[
    Optional[list[str]],  # noqa: UP045
    typer.Option("--set", metavar="KEY=VALUE", help="A dotted key of the file and its value; may be repeated."),
]
NewName = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--name", metavar="NAME", help="The job's name, over what the file says."),
]
Address = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(
        metavar="URL",
        help="The cluster's jobs server, http://HEAD:8265; else RAY_API_SERVER_ADDRESS, else RAY_ADDRESS.",
    ),
]
AllowCode = Annotated[
    bool,
    typer.Option("--allow-code", help="Run the Python code that the job names, as module:name, if it does."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
DataDir = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option(metavar="FOLDER", help="Where datasets lie; else WARMBAND_DATA, else WARMBAND_HOME/data."),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show Ray's own logs too, and what workers print.")]


def overrides(set_: Iterable[str] | None, **keys: object) -> list[str]:
    """What goes over a job file: `--set`, and behind it keys of the file that have options of their own."""
    return [*(set_ or ()), *(f"{key}={json.dumps(value)}" for key, value in keys.items() if value is not None)]


class Command(TyperCommand):
    """A command whose help does not say of a flag that it takes a truth value: it takes none."""

    def get_params(self, ctx: Any) -> list[Any]:
        """See typer's."""
        return _bare(super().get_params(ctx))


class SlowCommand(Command):
    """A command that prints a line before it loads libraries, such as Ray, which take seconds to load.

    The line goes to standard error: standard output may be read by a program.
    """

    def invoke(self, ctx: Any) -> Any:
        """Print the line, and run the command."""
        arguments = [
            ctx.params.get(parameter.name) for parameter in self.params if parameter.param_type_name != "option"
        ]
        subject = next((f" {argument}" for argument in arguments if isinstance(argument, str)), "")
        typer.echo(f"{ctx.command_path}{subject}: loading Ray and other libraries ...", err=True)
        return super().invoke(ctx)


class Group(TyperGroup):
    """The same for a group of commands, of which some have names of two words.

    Of the first word alone, or with one more word, the command is that of one word: a job may have the name "add".
    """

    def get_params(self, ctx: Any) -> list[Any]:
        """See typer's."""
        return _bare(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """See typer's."""
        two = " ".join(args[:2])
        if two in self.commands and (len(args) > 2 or ctx.resilient_parsing):
            return two, self.commands[two], args[2:]
        return super().resolve_command(ctx, args)


def _bare(parameters: list[Any]) -> list[Any]:
    for parameter in parameters:
        if isinstance(parameter, TyperOption) and parameter.is_flag:
            parameter.metavar = ""
    return parameters
