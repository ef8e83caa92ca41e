"""A folder as its workers see it: in place, as links to a worker's own files, or as copies from an object store."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from trainers.channels.distribution import SHARDED, Distribution
from trainers.channels.folder.fetching import Wanted, fetch
from trainers.channels.folder.sharing import dealt
from trainers.channels.table import Table
from trainers.errors import ConfigurationError, DataError

ROWLESS = "is a folder of files as they are, which has no rows to read; give the paths of .csv or .parquet files"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedFolder:
    """A folder on its way to workers.

    Args:
        where: its path, or its URI.
        distribution: see `Folder`.
        names: of its files, from it on; none of one that is read in place.
        sizes: in bytes, of each.
        filesystem: of an object store, pyarrow's; None of a disk.
        inside: the folder there.
    """

    where: str
    distribution: Distribution
    names: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    filesystem: Any = None
    inside: str = ""

    @property
    def rows(self) -> None:
        """See `Source.rows`: there are none."""
        return

    @property
    def sharded(self) -> bool:
        """Whether each worker has files of its own; else one of a node lays all out for the others."""
        return bool(self.distribution == SHARDED)

    @property
    def in_place(self) -> bool:
        """Whether workers read the folder itself, at its own path."""
        return self.filesystem is None and not self.sharded

    def parts(self, world_size: int) -> tuple[tuple[int, ...], ...]:
        """Return the numbers of each worker's files, by rank, where each worker has files of its own."""
        return dealt(self.names, self.sizes, world_size)

    def lay_out(self, place: Path, rank: int, world_size: int) -> None:
        """Makes the files of a worker, or of all, readable on this machine.

        Args:
            place: a folder that is not there yet, for links and copies; nothing is done to it for one in place.
            rank: of the worker.
            world_size: workers of its gang.

        Raises:
            DataError, StorageError: a file is gone, not what it was, or cannot be fetched.
        """
        if self.in_place:
            if not os.path.isdir(self.where):
                raise DataError(f"folder {self.where!r} is not there any more; put it back, or mount its disk")
            return
        own = self.parts(world_size)[rank] if self.sharded else range(len(self.names))
        # The folders of all, also where this worker has no file of one: who numbers them, classes say, numbers alike.
        for folder in sorted({place / name.rpartition("/")[0] for name in self.names}):
            folder.mkdir(parents=True, exist_ok=True)
        if self.filesystem is None:
            for file in own:
                self._link(place, file)
        else:
            wanted = [Wanted(f"{self.inside}/{self.names[file]}", self.sizes[file], self.names[file]) for file in own]
            fetch(self.where, self.filesystem, wanted, place)

    def _link(self, place: Path, file: int) -> None:
        name, size = self.names[file], self.sizes[file]
        path = os.path.join(self.where, name)
        try:
            now = os.stat(path).st_size
        except OSError as error:
            gone = "is gone" if isinstance(error, FileNotFoundError) else f"cannot be looked at ({error.strerror})"
            raise DataError(
                f"{path!r} had {size:,} bytes when the channel was opened, and {gone}; put it back, or begin a new job"
            ) from None
        if now != size:
            raise DataError(
                f"{path!r} has {now:,} bytes, and had {size:,} when the channel was opened; put it back, or begin "
                "a new job"
            )
        (place / name).symlink_to(path)

    def read(self, rank: int, world_size: int) -> NoReturn:
        """See `Source.read`: there are no rows."""
        raise ConfigurationError(f"{self.where!r} {ROWLESS}")

    def each(self, rank: int, world_size: int) -> NoReturn:
        """See `read`."""
        self.read(rank, world_size)

    def read_whole(self) -> Table:
        """See `read`."""
        self.read(0, 1)
