"""Data that the command `hpo data check` is asked about: a named dataset, a job file's channels, or files."""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from trainers.errors import ConfigurationError, DataError

if TYPE_CHECKING:
    from trainers.channels import Channel, OpenedExamples, OpenedFolder
    from trainers.trainer import Trainer

_NAMED = re.compile(r"([A-Za-z0-9._-]+)=(.*)", re.DOTALL)
_ARGUMENT = re.compile(
    r"""\b(?P<name>target|drop|keep|categorical|missing|delimiter)="""
    r"""(?P<value>\[[^\[\]]*\]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?|\.\.\.)"""
)
"""An argument of `Channel.of` that is an option of the command, with its value, in a message."""


def channels_of(
    what: Sequence[str], columns: Mapping[str, Any], data_dir: str | None, *, allow_code: bool
) -> tuple[dict[str, Channel], int | None, tuple[str, ...]]:
    """The channels that a user means, the workers that a job file trains them on, and why its trainer refuses them.

    Args:
        what: one name of a dataset, one job file, paths of one channel, or CHANNEL=PATH for each of several.
        columns: of files, the arguments of `Channel.of` that say how columns are read; columns by name or position.
        data_dir: where named datasets lie.
        allow_code: a job file may name code.

    Raises:
        ConfigurationError: it is none of these, or paths with names are mixed with others.
        DataError: files are missing, damaged, or not those that were published.
    """
    if _is_job(what):
        _none(columns, "a job file")
        return _of_job(what[0], data_dir, allow_code=allow_code)
    if _is_dataset(what):
        _none(columns, "a dataset that has a name")
        return _of_dataset(what[0], data_dir), None, ()
    return _of_files(what, columns), None, ()


def as_options(text: str, what: Sequence[str]) -> str:
    """A message in which arguments of `Channel.of` are options of the command, where these are for what is asked about.

    Args:
        text: of an error or a report.
        what: see `channels_of`; of files alone the options say something.
    """
    return text if _is_job(what) or _is_dataset(what) else _ARGUMENT.sub(_option, text)


@contextmanager
def errors_with_options(what: Sequence[str]) -> Iterator[None]:
    """Errors of the block have options of the command for arguments; see `as_options`."""
    try:
        yield
    except (ConfigurationError, DataError) as error:
        raise type(error)(as_options(str(error), what)) from error


def _option(found: re.Match[str]) -> str:
    value = ast.literal_eval(found["value"])
    values = value if isinstance(value, list) else [value]
    shown = ["COLUMN" if each is ... else shlex.quote(str(each)) for each in values]
    return " ".join(f"--{found['name']} {each}" for each in shown) or found[0]


def _is_job(what: Sequence[str]) -> bool:
    return len(what) == 1 and what[0].endswith((".yaml", ".yml"))


def _is_dataset(what: Sequence[str]) -> bool:
    """Whether it can only be the name of a dataset, known or not."""
    return len(what) == 1 and not re.search(r"[/\\.*?=\[]", what[0]) and not os.path.exists(what[0])


def _of_dataset(name: str, data_dir: str | None) -> dict[str, Channel]:
    import typer

    from hpo.jobs import dataset_channels
    from trainers import datasets

    checked = datasets.check(name, data_dir)
    for path, good, problem in checked:
        typer.echo(f"{path}: {'ok, by its SHA-256' if good else problem}", err=True)  # Beside what programs read.
    if not all(good for _, good, _ in checked):
        raise DataError(f"dataset {name!r} is not whole here; run `hpo data fetch {name}`")
    return dataset_channels(name, data_dir=data_dir)


def _of_job(
    path: str, data_dir: str | None, *, allow_code: bool
) -> tuple[dict[str, Channel], int | None, tuple[str, ...]]:
    import typer

    from hpo.job_file import read_job
    from trainers.channels import OpenedExamples, OpenedFolder, open_channels

    spec = read_job(path, allow_code=allow_code)
    opened = open_channels(spec.channels(data_dir), train=False)
    others = {
        name: each.source for name, each in opened.items() if isinstance(each.source, OpenedFolder | OpenedExamples)
    }
    rows = {name: channel for name, channel in opened.items() if name not in others}
    kinds = {name: _kind(source) for name, source in others.items()}
    if not rows:
        only = ", ".join(f"channel {name!r} is {kind}" for name, kind in kinds.items())
        raise ConfigurationError(f"job file {path!r} has no rows to look into: {only}, and is found and counted alone")
    for name, kind in kinds.items():
        typer.echo(f"channel {name!r} is {kind}: it was found, and is not looked into", err=True)
    workers = getattr(spec.trainer, "num_workers", None)
    refusals = _refusals(spec.trainer.trainer(), rows) if spec.trainer.type == "xgboost" else ()
    return rows, max(1, workers) if isinstance(workers, int) else None, refusals


def _refusals(trainer: Trainer, channels: Mapping[str, Channel]) -> tuple[str, ...]:
    """Why a trainer does not take channels, such as a column's name; empty where it does."""
    try:
        trainer.checked(channels)
    except (ConfigurationError, DataError) as error:
        return (f"the job will not start: {error}",)
    return ()


def _kind(source: OpenedFolder | OpenedExamples) -> str:
    about = source.describe()
    if about["kind"] == "folder":
        return "a folder"
    rows, classes = about.get("rows"), about.get("classes")
    of = f" of {len(classes)} classes" if classes else ""
    return f"Examples.{about['kind']}" + (f", {rows:,} examples{of}" if rows is not None else "")


def _of_files(what: Sequence[str], columns: Mapping[str, Any]) -> dict[str, Channel]:
    from trainers.channels import Channel, gathered, open_channels

    named = [None if os.path.exists(each) else _NAMED.fullmatch(each) for each in what]
    said = {name: _by_place(value) for name, value in columns.items() if value is not None}
    if not any(named):
        return open_channels({"train": Channel.of(list(what), name="train", **said)})
    paths: dict[str, list[str]] = {}
    for each, match in zip(what, named, strict=True):
        if match is None:
            raise ConfigurationError(
                f"{each!r} is a path without a channel, beside others with one; give CHANNEL={each}"
            )
        if not match[2]:
            raise ConfigurationError(f"{each!r} names no file; give {match[1]}=PATH")
        paths.setdefault(match[1], []).append(match[2])
    made = gathered({name: partial(Channel.of, own, name=name, **said) for name, own in paths.items()})
    return open_channels(made, train=False)


def _by_place(value: Any) -> Any:
    """Columns of the command line, whole numbers as positions."""
    if isinstance(value, list):
        return [_by_place(each) for each in value]
    return int(value) if isinstance(value, str) and re.fullmatch(r"-?\d{1,9}", value) else value


def _none(columns: Mapping[str, Any], of: str) -> None:
    for option, value in columns.items():
        if value is not None:
            raise ConfigurationError(f"--{option} {value!r} is for files, and {of} has its own; leave it out")
