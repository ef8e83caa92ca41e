"""A named dataset: its facts, and its rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Rows: TypeAlias = "pd.DataFrame | tuple[NDArray[np.float32], NDArray[np.float32]]"
"""A table, the target `y` first, then the features, all float32; or for images features and labels, a row each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetInfo:
    """Where a named dataset comes from.

    Args:
        name: what it is called on the command line.
        title: what reports call it.
        description: one sentence.
        source: who made it, and where it is published.
        licence: what it may be used under.
        rows: rows before any repetition.
        url: what is downloaded, or None where nothing is: an archive, or the folder, ending in /, of all `files`.
        files: SHA-256 of each file that may lie in the data directory. Of an archive's any one is enough.
        synthetic: whether it is generated, not measured.
        mirrors: other homes of the same, tried in turn when `url` fails.
        inside: of an archive, the path to unpack, and the one to unpack from that, to the file that is kept.
        instead: a dataset of the same form that needs no download.
    """

    name: str
    title: str
    description: str
    source: str
    licence: str
    rows: int
    url: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    synthetic: bool = False
    mirrors: tuple[str, ...] = ()
    inside: tuple[str, ...] = ()
    instead: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Dataset:
    """A dataset prepared for training, each part as `Channel.of` takes it."""

    name: str
    title: str
    synthetic: bool
    train: Rows
    validation: Rows
    test: Rows
