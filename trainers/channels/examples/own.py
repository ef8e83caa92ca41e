"""Datasets of a user's own function, and of Hugging Face's `datasets`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from trainers.channels.examples.located import Located, located
from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError, DataError
from trainers.extras import check_extra
from trainers.process import load


@dataclass(frozen=True, slots=True, kw_only=True)
class Own:
    """A dataset that a function makes; see `Form`."""

    name: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any]
    rows: int | None
    located: Located | None = None

    ragged: tuple[str, ...] = ()

    @property
    def described(self) -> dict[str, Any]:
        """See `Form`."""
        return {"columns": None, "function": self.name}

    def opened(self) -> Any:
        """See `Form`."""
        return made(self.name, self.function, self.arguments)


def made(name: str, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """What a function makes.

    Raises:
        ConfigurationError: it fails, does not take the arguments, or makes no dataset.
    """
    from torch.utils.data import Dataset

    try:
        dataset = function(**arguments)
    except Exception as error:  # A user's code raises what it likes.
        raise _fails(f"Examples.named({name!r}) with {dict(arguments)}", error) from error
    has_rows = hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")
    if not isinstance(dataset, Dataset) and (not has_rows or isinstance(dataset, list | tuple | dict | str)):
        raise ConfigurationError(
            f"Examples.named({name!r}) made a {type(dataset).__name__}; let it return a torch.utils.data.Dataset or "
            "IterableDataset"
        )
    return dataset


def opened(arguments: Mapping[str, Any]) -> Own:
    """What `Examples.named` stands for; the function is called.

    Raises:
        ConfigurationError: it cannot be loaded, or makes no dataset.
        DataError: what it makes is empty.
    """
    name, words = arguments["function"], arguments["arguments"]
    function = load(name, "Examples.named", "function")
    if not callable(function):
        raise ConfigurationError(f"Examples.named({name!r}) is a {type(function).__name__}; give a function or a class")
    dataset = made(name, function, words)
    try:
        rows = _length(dataset)
    except Exception as error:
        raise _fails(f"len() of what Examples.named({name!r}) made", error) from error
    if rows == 0:
        raise DataError(f"Examples.named({name!r}) made a dataset without rows; give one that has some")
    return Own(name=name, function=function, arguments=words, rows=rows)


def _fails(what: str, error: Exception) -> ConfigurationError:
    said = " ".join(str(error).split())
    return ConfigurationError(f"{what} fails: {type(error).__name__}{f': {said}' if said else ''}; mend it")


def _length(dataset: Any) -> int | None:
    try:
        return len(dataset)
    except (TypeError, NotImplementedError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class HuggingFace:
    """A dataset that `datasets` wrote; see `Form`."""

    folder: str
    split: str | None
    only: tuple[str, ...] | None
    rows: int
    names: tuple[str, ...]
    located: Located

    ragged: tuple[str, ...] = ()

    @property
    def described(self) -> dict[str, Any]:
        """See `Form`."""
        return {"columns": list(self.names)}

    def opened(self) -> Any:
        """See `Form`."""
        return _loaded(self.folder, self.split, self.only)


def opened_hugging_face(arguments: Mapping[str, Any]) -> HuggingFace:
    """What `Examples.hugging_face` stands for.

    Raises:
        ConfigurationError: `datasets` is missing, or a split has to be named.
        DataError: there is no such dataset, split or column.
    """
    check_extra("Examples.hugging_face", "data", "datasets")
    folder, split = arguments["folder"], arguments["split"]
    if "://" in folder:
        raise ConfigurationError(f"{folder}: datasets are read from disks; copy it to one that all nodes see")
    only = None if arguments["only"] is None else tuple(arguments["only"])
    dataset = _loaded(folder, split, only)
    if not len(dataset):
        raise DataError(f"{folder} has no rows; give a dataset that has some")
    return HuggingFace(
        folder=folder,
        split=split,
        only=only,
        rows=len(dataset),
        names=tuple(dataset.column_names),
        located=located([folder], (".arrow", ".json"), "a dataset"),
    )


def _loaded(folder: str, split: str | None, only: tuple[str, ...] | None) -> Any:
    import datasets

    try:
        loaded = datasets.load_from_disk(folder)
    except FileNotFoundError:
        raise DataError(
            f"{folder} is no dataset of Hugging Face; give a folder that Dataset.save_to_disk has written"
        ) from None
    if isinstance(loaded, datasets.DatasetDict):
        if split not in loaded:
            asked = "" if split is None else f", not {split!r}"
            raise DataError(f"{folder} has splits {', '.join(loaded)}{asked}; say split={next(iter(loaded))!r}")
        loaded = loaded[split]
    elif split is not None:
        raise DataError(f"{folder} is one dataset, and has no split {split!r}; leave split out")
    for name in only or ():
        if name not in loaded.column_names:
            near = did_you_mean(name, loaded.column_names)
            raise DataError(f"{folder} has no column {name!r}{near}; it has {', '.join(loaded.column_names)}")
    return loaded.with_format("torch", columns=list(only) if only else None)
