"""Commands that write a first job file, and the JSON schema of job files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trainers.errors import ConfigurationError


def init(
    file: Annotated[str, typer.Argument(metavar="[FILE]", help="The file to write.")] = "job.yaml",
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file that is there.")] = False,
) -> None:
    """Write a commented job file to start from.

    It runs as it is, on generated data.
    """
    from importlib.resources import files

    text = files("hpo.cli").joinpath("job.yaml").read_text(encoding="utf-8")
    try:
        with Path(file).open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise ConfigurationError(f"{file!r} is there already; give another name, or --force to overwrite it") from None
    except OSError as error:
        raise ConfigurationError(f"{file!r} cannot be written: {error.strerror or error}") from error
    typer.echo(f"Wrote {file}. Run it with: hpo tune {file}")


def schema() -> None:
    """Print the JSON schema of job files, for editors.

    Editors that speak YAML's language server complete and check a job
    file whose first line names the schema, as that of hpo init does:
    # yaml-language-server: $schema=job.schema.json
    """
    from hpo.cli.terminal import show_json
    from hpo.job_file import json_schema

    show_json(json_schema())
