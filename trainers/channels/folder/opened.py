"""A folder that is a channel, on its driver: listed once, when it was opened."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, NoReturn

from trainers.channels import fingerprint
from trainers.channels.distribution import SHARDED, Distribution
from trainers.channels.fingerprint import Parts
from trainers.channels.folder.given import Folder
from trainers.channels.folder.laid_out import ROWLESS, PlacedFolder
from trainers.channels.folder.listing import Listing, listing_of
from trainers.errors import ConfigurationError, DataError

SAMPLES = 64
"""Files that every node looks for, to see that it has the driver's folder under that path."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenedFolder:
    """A folder and its files. Make it with `of`."""

    listing: Listing
    distribution: Distribution

    @classmethod
    def of(cls, folder: Folder) -> OpenedFolder:
        """Lists its files.

        Raises:
            ConfigurationError, DataError: see `listing_of`.
        """
        return cls(listing=listing_of(os.fspath(folder.path)), distribution=folder.distribution)

    @property
    def rows(self) -> None:
        """See `Source.rows`: there are none."""
        return

    @property
    def heading(self) -> None:
        """See `Source.heading`: there are no columns."""
        return

    @property
    def sparse(self) -> bool:
        """See `Source`."""
        return False

    @property
    def roles_said(self) -> tuple[str, ...]:
        """See `Source`."""
        return ()

    def describe(self) -> dict[str, Any]:
        """See `Channel.describe`; of many files there is the folder, how many, and their bytes."""
        return {
            "kind": "folder",
            "rows": None,
            "columns": None,
            "files": [self.listing.where],
            "target": None,
            "distribution": self.distribution,
            "count": len(self.listing.files),
            "bytes": sum(file.size for file in self.listing.files),
        }

    def fingerprint(self) -> str:
        """See `Channel.fingerprint`: of names, sizes and times; nothing of the files is read."""
        return fingerprint.of_names(
            self.distribution, ((file.name, file.size, file.written_ns) for file in self.listing.files)
        )

    def parts(self) -> Parts:
        """See `Channel.parts`."""
        return fingerprint.parts_of_names((file.name, file.size, file.written_ns) for file in self.listing.files)

    def reopened_with(self) -> dict[str, Any]:
        """Arguments of `Folder` that open the same again, as JSON takes them; its path as "folder"."""
        return {"folder": self.listing.where, "distribution": self.distribution}

    def samples(self) -> list[str]:
        """Paths of some of its files, of a folder on disks; none of one in an object store."""
        if self.listing.filesystem is not None:
            return []
        files = self.listing.files[:: -(-len(self.listing.files) // SAMPLES)]
        return [os.path.join(self.listing.where, file.name) for file in files]

    def check_workers(self, workers: int) -> None:
        """Refuses to leave a worker without a file.

        Raises:
            DataError: there are fewer than workers.
        """
        files = len(self.listing.files)
        if self.distribution == SHARDED and files < workers:
            raise DataError(
                f"folder {self.listing.where!r} has {files} file{'s' if files != 1 else ''} to deal out with "
                f"{SHARDED!r}, fewer than the {workers} workers: give it as a whole ('FullyReplicated'), split the "
                "files, or take fewer workers"
            )

    def look(self) -> None:
        """See `Source.look`: there are no labels."""
        return

    def read(self, rank: int, world_size: int) -> NoReturn:
        """See `Source.read`: there are no rows."""
        raise ConfigurationError(f"{self.listing.where!r} {ROWLESS}")

    def place(self, num_workers: int) -> PlacedFolder:
        """See `Source.place`: files stay where they are."""
        self.check_workers(num_workers or 1)
        listing = self.listing
        in_place = listing.filesystem is None and self.distribution != SHARDED
        return PlacedFolder(
            where=listing.where,
            distribution=self.distribution,
            names=() if in_place else tuple(file.name for file in listing.files),
            sizes=() if in_place else tuple(file.size for file in listing.files),
            filesystem=listing.filesystem,
            inside=listing.inside,
        )
