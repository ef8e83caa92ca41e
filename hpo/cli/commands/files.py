"""Commands that write a first job file, one for a sweep of W&B's, and the JSON schema of job files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from trainers.errors import ConfigurationError


def init(
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="The file to write.")] = "job.yaml",
    program: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--from", metavar="PROGRAM", help="A program of yours, whose source is read and not run."),
    ] = None,
    run_help: Annotated[
        bool,
        typer.Option(
            "--run-help",
            help="Run the program with --help too, for options that its source does not tell; for a minute at most, "
            "with your rights.",
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Write a commented job file to start from.

    It runs as it is, on generated data. With --from, it tunes a program
    of yours: the program's options, its length, the lines that print
    metrics and its folders of outputs are read from its source, and what
    is a guess says CHECK.
    """
    if run_help and program is None:
        raise ConfigurationError("--run-help is given without --from; give the program too: --from train.py")
    if program is not None:
        from hpo.job_file import job_of_program

        text = job_of_program(program, run_help=run_help)
        _write(file, text, force=force)
        typer.echo(text, nl=False)
        typer.echo(f"Wrote {file}. Run it with: hpo tune {file} --allow-code")
        return
    from hpo.job_file import example_file

    _write(file, example_file(), force=force)
    typer.echo(f"Wrote {file}. Run it with: hpo tune {file}")


def import_(
    sweep: Annotated[str, typer.Argument(metavar="SWEEP.yaml", help="The sweep file.")],
    out: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option("--out", "-o", metavar="FILE", help="The job file to write; it is printed where none is given."),
    ] = None,
    units: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            metavar="N",
            min=1,
            help="Reports of the metric in a full trial, where no parameter such as epochs says how many.",
        ),
    ] = None,
) -> None:
    """Turn a sweep file of Weights & Biases into a job file.

    Comments at its head say, by the lines of the sweep, what was chosen
    and what has no counterpart. What cannot be carried over is an error
    that names it. A file that is there is never overwritten.
    """
    from hpo.job_file import job_of_sweep

    text = job_of_sweep(sweep, units=units)
    if out is None:
        typer.echo(text, nl=False)
        return
    _write(out, text, force=None)
    typer.echo(text.partition("\n\n")[0])
    typer.echo(f"Wrote {out}. Run it with: hpo tune {out} --allow-code")


def _write(file: str, text: str, *, force: bool | None) -> None:
    """Writes a file; `force` is whether over one that is there, and None where the command has no such option."""
    try:
        with Path(file).open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        force_it = "" if force is None else ", or --force to overwrite it"
        raise ConfigurationError(f"{file!r} is there already; give another name{force_it}") from None
    except OSError as error:
        raise ConfigurationError(f"{file!r} cannot be written: {error.strerror or error}") from error


def schema(
    training: Annotated[bool, typer.Option("--training", help="Of job files for hpo train, instead.")] = False,
) -> None:
    """Print the JSON schema of job files, for editors.

    Editors that speak YAML's language server complete and check a job
    file whose first line names the schema, as that of hpo init does:
    # yaml-language-server: $schema=job.schema.json
    """
    from hpo.cli.terminal import show_json
    from hpo.job_file import json_schema

    show_json(json_schema(training=training))
