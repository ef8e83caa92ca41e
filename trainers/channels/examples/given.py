"""`Examples`: what a user gives for a channel that is a PyTorch dataset."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from trainers.checking import check_whole, did_you_mean, is_whole
from trainers.errors import ConfigurationError
from trainers.process import PLACE

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
Mode = Literal["RGB", "L"]
Each = Literal["line", "file"]

KINDS: tuple[str, ...] = ("images", "text", "columns", "named", "hugging_face")
"""Constructors of `Examples` that a job file and a record can name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """A channel for PyTorch trainers that is no table of numbers. Make it with one of its constructors.

    Args:
        kind: one of `KINDS`, or "ray_data".
        arguments: of that constructor; of `KINDS`, as JSON takes them.
    """

    kind: str
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def images(
        cls,
        paths: Paths,
        *,
        size: int | Sequence[int] | None = None,
        mode: Mode = "RGB",
        image: str | None = None,
        target: str | None = None,
    ) -> Examples:
        """Images: uint8 tensors of (channels, height, width), each with its label, int64 of a class.

        Args:
            paths: a folder with a folder for each class, in the order of their names, or with images alone; or Parquet
                files with a column of files' bytes.
            size: height and width that images are resized to, or one number for both; None leaves them as they are.
            mode: "RGB", or "L" for one channel of grey.
            image: the column of bytes, of Parquet files; None: the only one there is.
            target: the column of labels, of Parquet files, numbers or text; None: the only other one, or none.

        Raises:
            ConfigurationError: an argument is none of these.
        """
        given = [size] if is_whole(size) else None if size is None else size
        if given is not None and not (
            isinstance(given, list | tuple) and len(given) in (1, 2) and all(is_whole(side, 1) for side in given)
        ):
            raise ConfigurationError(f"size={size!r}: give pixels, such as 64, or (height, width)")
        _check_word("mode", mode, get_args(Mode))
        shape = None if given is None else [given[0], given[-1]]
        return cls(
            kind="images",
            arguments={"paths": _paths(paths), "size": shape, "mode": mode, "image": image, "target": target},
        )

    @classmethod
    def text(cls, paths: Paths, *, each: Each = "line", labelled: bool = False) -> Examples:
        """Text in UTF-8, as `str`.

        Args:
            paths: files, patterns or folders of .txt files.
            each: whether a line is an example, without its end, or a file.
            labelled: the folder that a file is in, below the one given, is its class: examples are (text, number).

        Raises:
            ConfigurationError: an argument is none of these.
        """
        _check_word("each", each, get_args(Each))
        if not isinstance(labelled, bool):
            raise ConfigurationError(f"labelled={labelled!r}: give True or False")
        return cls(kind="text", arguments={"paths": _paths(paths), "each": each, "labelled": labelled})

    @classmethod
    def columns(cls, paths: Paths, *, only: Sequence[str] | None = None) -> Examples:
        """Rows of Parquet files as dicts: numbers as tensors of their type, lists of a fixed size as tensors.

        Lists of various lengths stay apart in a batch, as a list of tensors; text and bytes are a list, too.

        Args:
            paths: files, patterns or folders of .parquet files.
            only: the columns to read; None is all.

        Raises:
            ConfigurationError: an argument is none of these.
        """
        return cls(kind="columns", arguments={"paths": _paths(paths), "only": _names(only)})

    @classmethod
    def named(cls, function: str, /, **arguments: Any) -> Examples:
        """A `torch.utils.data.Dataset` or `IterableDataset` of your own, which a function of yours makes.

        Args:
            function: its name, "module:name"; or a dataset's class. It is called here and on each worker.
            arguments: of the function, as JSON takes them.

        Raises:
            ConfigurationError: it is no such name, or an argument is no JSON.
        """
        if not isinstance(function, str) or not PLACE.fullmatch(function):
            raise ConfigurationError(f"Examples.named({function!r}): give a function's name as 'module:name'")
        try:
            same = json.loads(json.dumps(arguments)) == arguments
        except (TypeError, ValueError):
            same = False
        if not same:
            raise ConfigurationError(
                f"Examples.named({function!r}) has arguments {arguments!r}; give numbers, text, lists and dicts of "
                "them, so that a job's record can keep them"
            )
        return cls(kind="named", arguments={"function": function, "arguments": arguments})

    @classmethod
    def hugging_face(
        cls, folder: str | os.PathLike[str], *, split: str | None = None, only: Sequence[str] | None = None
    ) -> Examples:
        """A dataset that `datasets` of Hugging Face wrote with `save_to_disk`; rows are dicts of tensors and text.

        Args:
            folder: where it lies, on a disk.
            split: which part of a `DatasetDict`, such as "train".
            only: the columns to read; None is all.

        Raises:
            ConfigurationError: an argument is none of these.
        """
        if not isinstance(folder, str | os.PathLike):
            raise ConfigurationError(f"Examples.hugging_face({folder!r}): give one folder")
        return cls(kind="hugging_face", arguments={"folder": _paths(folder)[0], "split": split, "only": _names(only)})

    @classmethod
    def ray_data(cls, dataset: Any, *, buffer: int = 10_000) -> Examples:
        """A `ray.data.Dataset` that is executed while training runs, in each pass anew: dicts of tensors.

        Args:
            dataset: it; what it gives has to be the same each time.
            buffer: rows of a worker among which those of a shuffled batch are drawn.

        Raises:
            ConfigurationError: it is none, or the buffer holds nothing.
        """
        # Whoever holds a Ray Dataset has imported Ray Data, which takes seconds.
        if "ray.data" not in sys.modules or not isinstance(dataset, sys.modules["ray.data"].Dataset):
            raise ConfigurationError(f"Examples.ray_data got a {type(dataset).__name__}; give a ray.data.Dataset")
        check_whole("buffer", buffer, 1)
        return cls(kind="ray_data", arguments={"dataset": dataset, "buffer": buffer})

    @classmethod
    def of(cls, kind: str, arguments: Mapping[str, Any]) -> Examples:
        """The same again, out of a record."""
        if kind == "named":
            return cls.named(arguments["function"], **arguments["arguments"])
        if kind not in KINDS:
            raise ConfigurationError(f"there are no examples of kind {kind!r}; give one of {', '.join(KINDS)}")
        made: Examples = getattr(cls, kind)(**arguments)
        return made


def _paths(paths: Any) -> list[str]:
    """Absolute paths, and URIs as they are."""
    several = list(paths) if isinstance(paths, list | tuple) else [paths]
    if not several:
        raise ConfigurationError("there are no paths; give at least one")
    for path in several:
        if not isinstance(path, str | os.PathLike) or not os.fspath(path):
            raise ConfigurationError(f"{path!r} is no path; give a file, a folder, a pattern or a URI")
    texts = [str(os.fspath(path)) for path in several]
    return [text if "://" in text else os.path.abspath(os.path.expanduser(text)) for text in texts]


def _names(only: Any) -> list[str] | None:
    if only is None:
        return None
    if not isinstance(only, list | tuple) or not only or not all(isinstance(name, str) for name in only):
        raise ConfigurationError(f"only={only!r}: give names of columns, such as ['tokens', 'label'], or leave it out")
    return list(only)


def _check_word(name: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        raise ConfigurationError(f"{name}={value!r}: give {' or '.join(map(repr, known))}{did_you_mean(value, known)}")
