"""The channels of a training by name, opened and checked before anything starts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from trainers.channels.channel import Channel
from trainers.channels.distribution import SHARDED, WHOLE
from trainers.channels.examples import OpenedExamples
from trainers.channels.files import LibsvmFiles, agreed
from trainers.channels.folder import OpenedFolder
from trainers.channels.labels import LabelRule
from trainers.channels.memory import Memory
from trainers.channels.rows import Problems
from trainers.checking import nearest
from trainers.errors import ConfigurationError

_CHANNEL_NAME = re.compile(r"[A-Za-z0-9._-]+")


def open_channels(channels: Any, *, train: bool = True) -> dict[str, Channel]:
    """Channels by name, checked as far as that goes without reading them.

    Args:
        channels: by name, as `Channel.of` takes them; or one alone, such as a path or a DataFrame, which is "train".
            None is no channel.
        train: whether "train" has to be among them.

    Raises:
        ConfigurationError: there is no "train" where one is needed.
        DataError: a source is missing or cannot be one.
    """
    if not isinstance(channels, Mapping):
        channels = {} if channels is None else {"train": channels}
    for name in channels:
        if not isinstance(name, str) or not _CHANNEL_NAME.fullmatch(name):
            raise ConfigurationError(
                f"channels have the name {name!r}; give letters, digits, hyphens, dots and underscores"
            )
    if train:
        check_train(channels)
    return agree(gathered({name: partial(Channel.of, source, name=name) for name, source in channels.items()}))


def check_train(channels: Iterable[str]) -> None:
    """Refuse names of channels without "train" among them.

    Raises:
        ConfigurationError: "train" is missing.
    """
    names = list(channels)
    if "train" not in names:
        near = nearest("train", names, cutoff=0.3)
        hint = f"; did you mean it by {near!r}?" if near else ""
        raise ConfigurationError(f'channels are {sorted(names)} and need one called "train"{hint}')


def gathered(makers: Mapping[str, Callable[[], Channel]]) -> dict[str, Channel]:
    """Make channels, and raise the problems of all of them together.

    Args:
        makers: of each channel, by its name.

    Raises:
        ConfigurationError, DataError: each problem is a line.
    """
    problems, made = Problems(), {}
    for name, make in makers.items():
        with problems.gathered():
            made[name] = make()
    problems.check()
    return made


def agree(channels: Mapping[str, Channel]) -> dict[str, Channel]:
    """The channels, those of libsvm files with one numbering of columns, and as many; see `files.agreed`.

    Categories have the codes that they have in "train".

    Raises:
        DataError: one has a category that "train" has in no row, or other columns.
    """
    found = {name: source for name, channel in channels.items() if isinstance(source := channel.source, LibsvmFiles)}
    others = [channel.source.heading for channel in channels.values() if isinstance(channel.source, Memory)]
    sources = agreed(found, max((heading.count for heading in others if heading), default=0))
    alike = {
        name: replace(channel, source=sources[name]) if name in sources else channel
        for name, channel in channels.items()
    }
    train = alike.get("train")
    return {
        name: channel if train is None or channel is train else channel.coded_like(train)
        for name, channel in alike.items()
    }


def check_channels(
    channels: Mapping[str, Channel],
    rules: Callable[[str, str | None], tuple[LabelRule, ...]],
    metric: str | None,
    workers: int,
) -> dict[str, Channel]:
    """The channels with what is expected of their labels, compared with "train" and looked into.

    Args:
        channels: by name.
        rules: what is expected of a channel's labels, by its name and the objective where that is measured on it.
        metric: the objective, as "channel:metric".
        workers: of the largest gang that reads them.

    Raises:
        DataError: rows, labels or columns are not what they have to be.
    """
    channels_by_name = {}
    for name, channel in channels.items():
        measured = metric if metric and metric.rpartition(":")[0] == name else None
        channels_by_name[name] = channel.expecting(rules(name, measured), measured=measured is not None)
        if "train" in channels:
            channels_by_name[name].check_like(channels["train"])
        channels_by_name[name] = channels_by_name[name].look(workers)
    return channels_by_name


class Reads:
    """What a trainer says that it reads of its channels."""

    takes_folders: bool = False
    """Whether a channel may be a `Folder`; its `program` is then given a channel whose source is a `PlacedFolder`."""

    takes_examples: bool = False
    """Whether a channel may be `Examples`; its `program` is then given one whose source is `PlacedExamples`."""

    takes_categories: bool = True
    """Whether columns may hold categories; its `program` then reads tables with a DataFrame."""

    takes_sparse: bool = False
    """Whether rows may be sparse; its `program` then reads tables with a CSR matrix."""

    takes_distributions: tuple[str, ...] = (WHOLE, SHARDED)
    """How files of rows may be dealt out where a channel asks for it; see `Channel.of`."""

    deals: str = ""
    """What it does instead, for a message."""

    takes_roles: tuple[str, ...] = ()
    """What it reads of rows beside features and labels, of `trainers.channels.ROLES`."""


def refuse_unread(channels: Mapping[str, Channel], trainer: Reads) -> None:
    """Refuses what a trainer does not read.

    Args:
        channels: by name.
        trainer: it.

    Raises:
        ConfigurationError: naming the first channel that has such.
    """
    who = type(trainer).__name__
    for name, channel in channels.items():
        if unread := [role for role in channel.said if role not in trainer.takes_roles]:
            raise ConfigurationError(
                f"channel {name!r} says of its rows {', '.join(unread)}, which {who} does not read; leave "
                f"{'it' if len(unread) == 1 else 'them'} out, or train with XGBoostTrainer"
            )
        if channel.coding and not trainer.takes_categories:
            raise ConfigurationError(
                f"channel {name!r} has categories, in {channel.feature(next(iter(channel.coding)))}, and {who} takes "
                "numbers; encode them as such (pandas.get_dummies, say), or train with XGBoostTrainer"
            )
        if channel.sparse and not trainer.takes_sparse:
            raise ConfigurationError(
                f"channel {name!r} has sparse rows, and {who} reads dense ones alone; give X.toarray(), in which "
                "what is absent is 0, of libsvm files that of sklearn.datasets.load_svmlight_file, or train with "
                "XGBoostTrainer"
            )
        if channel.distribution and channel.distribution not in trainer.takes_distributions:
            raise ConfigurationError(
                f"channel {name!r} has distribution={channel.distribution!r}, and {who} {trainer.deals}; leave it out"
            )
        if isinstance(channel.source, OpenedFolder) and not trainer.takes_folders:
            raise ConfigurationError(
                f"channel {name!r} is a Folder, {channel.source.listing.where!r}, and {who} takes none: it reads "
                "rows; give the paths of .csv or .parquet files, or train by a program of yours, with ScriptTrainer"
            )
        if isinstance(channel.source, OpenedExamples) and not trainer.takes_examples:
            raise ConfigurationError(
                f"channel {name!r} is Examples.{channel.source.given.kind}, and {who} takes none: it reads tables; "
                "give the paths of .csv or .parquet files, or train with TorchTrainer or ParameterServerTrainer"
            )
