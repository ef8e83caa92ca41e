"""Reference pages of the command line, of job files, of the tuner and of the REST API, made by `make docs`."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer
from rich.text import Text

from hpo.cli.command import EXIT_CODES, root
from hpo.job_file import JobSpec, Key, TrainingSpec, keys
from hpo.jobs import declared
from hpo.serve import needs_act, rest_app, settings_tables

HEAD = """<!-- Made by `make docs` from hpo/cli/ and hpo/job_file/models.py: change those. -->

# The `hpo` command

`hpo` and `python -m hpo` are the same. `hpo COMMAND --help` says what stands here. Where output goes to a terminal,
tables fit its width; where it goes to a file or a pipe, they have at most 120 columns, or as many as `COLUMNS` says.
`--json` is for programs, and shortens nothing.
`hpo --install-completion` makes the shell complete commands, options, and the names of jobs and datasets.
"""

NOT_RUN = "<!-- not run: is a reference, whose commands are parsed -->"

JOB_FILE = """## Job files

`hpo init` writes one to start from. `--set KEY=VALUE` gives any key another value for one run, with the dotted names
below: `--set tuning.ranges.eta.max=0.5`. All that is wrong in a file is said at once, each with its line, before
anything starts; what the values do not allow together, such as a method of training with several workers, after that.

Files are YAML as version 1.2 has it: `1e-3` is a number, `yes` and `2026-01-31` are text. For completion in an editor
that speaks YAML's language server, write the schema beside the file, `hpo schema > job.schema.json`, and name it in the
file's first line, as `hpo init` does: `# yaml-language-server: $schema=job.schema.json`.

A key that is not required has the default when it is left out. `NAME` is a name of your own choice.
"""


TRAINING_FILE = """## Job files of a single training

`hpo train` runs a file that has no group `tuning`, and may have the group `training`; all its other keys are those
above. Of a file with the group `tuning` it takes what the two groups have in common. `hpo schema --training` prints the
schema.
"""

REST = re.compile(
    r"(<!-- made by `make docs` from hpo/serve/rest/: change that -->\n\n).*?(\n<!-- made so far -->)", re.DOTALL
)
"""The place of the table of the REST API in its page."""

SAGEMAKER = re.compile(
    r"(<!-- made by `make docs` from hpo/serve/aws/creating/: change that -->\n\n).*?(\n<!-- made so far -->)",
    re.DOTALL,
)
"""The place of the tables of what SageMaker's clients ask for in their page."""

OPTIONS = "<!-- Made by `make docs` from hpo/jobs/options.py: change that. -->\n\n"


def reference() -> str:
    """The whole page."""
    commands = [part for path, command in _commands(root(), ("hpo",)) for part in _command(path, command)]
    codes = _table(("code", "meaning"), ((str(code), meaning) for code, meaning in EXIT_CODES.items()))
    return "\n".join(
        [HEAD, "## Exit codes\n", codes, *commands, JOB_FILE, *_job_file(), TRAINING_FILE, _training_group()]
    )


def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with the words that call it."""
    for name, inner in command.commands.items():
        if hasattr(inner, "commands"):
            yield from _commands(inner, (*path, name))
        else:
            yield (*path, name), inner


def _command(path: tuple[str, ...], command: Any) -> Iterator[str]:
    context = typer.Context(command, info_name=" ".join(path))
    yield f"## {' '.join(path)}\n"
    yield inspect.cleandoc(command.help).replace("\n#", "\n\n    #") + "\n"
    records = [record for each in command.get_params(context) if (record := each.get_help_record(context))]
    rows = [
        (f"`{name.removesuffix(' <str>').strip()}`", text) for name, text in records if not name.startswith("--help")
    ]
    if rows:
        yield _table(("argument or option", ""), rows)
    if command.epilog:
        examples = Text.from_markup(command.epilog).plain.splitlines()[1:]
        yield "\n".join([NOT_RUN, "```sh", *(line.removeprefix("$ ") for line in examples), "```\n"])


def _job_file() -> Iterator[str]:
    entries = list(keys(JobSpec))
    plain = [key for key in entries if not key.kind]
    yield _key_table(plain)
    for kind in dict.fromkeys(key.kind for key in entries if key.kind):
        under = next(key.path for key in entries if key.kind == kind).rpartition(".")[0]
        yield f"### `{under}` of type `{kind}`\n"
        yield _key_table([key for key in entries if key.kind == kind])


def _training_group() -> str:
    return _key_table(key for key in keys(TrainingSpec) if key.path.startswith("training"))


def options_table() -> str:
    """A table of the tuner's options that SageMaker's class lacks."""
    rows = (
        (f"`{name}`", f"`{inspect.formatannotation(kind)}`", f"`{option.default!r}`", option.description)
        for name, (kind, option) in declared().items()
    )
    return _table(("option", "type", "default", ""), rows)


def rest_table() -> str:
    """A table of the routes of the server's REST API, in its description's order."""
    rows = (
        (f"`{method.upper()}`", f"`/api{path}`", _sentence(route["description"]), _rights(method))
        for path, methods in rest_app().openapi()["paths"].items()
        for method, route in methods.items()
    )
    return _table(("method", "path", "what it does", "rights"), rows)


def with_rest_table(page: str) -> str:
    """The page of the server with the table as the code says."""
    return REST.sub(lambda found: found[1] + rest_table() + found[2], page)


def with_sagemaker_tables(page: str) -> str:
    """Return the page of SageMaker's clients with the tables as the code says."""
    return SAGEMAKER.sub(lambda found: found[1] + settings_tables() + found[2], page)


def _rights(method: str) -> str:
    return "act" if needs_act(method.upper()) else "look"


def _sentence(text: str) -> str:
    return " ".join(text.split())


def _key_table(entries: Iterable[Key]) -> str:
    rows = ((f"`{key.path}`", key.takes, _default(key), key.description) for key in entries)
    return _table(("key", "takes", "default", ""), rows)


def _default(key: Key) -> str:
    return key.default if key.default == "required" else f"`{key.default}`"


def _table(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


if __name__ == "__main__":
    command, tuner, server, sagemaker = map(Path, sys.argv[1:])
    command.write_text(reference(), encoding="utf-8")
    head, _, _ = tuner.read_text(encoding="utf-8").partition(OPTIONS)
    tuner.write_text(head + OPTIONS + options_table(), encoding="utf-8")
    server.write_text(with_rest_table(server.read_text(encoding="utf-8")), encoding="utf-8")
    sagemaker.write_text(with_sagemaker_tables(sagemaker.read_text(encoding="utf-8")), encoding="utf-8")
