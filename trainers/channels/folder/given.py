"""`Folder`: what a user gives for a channel that is a folder of files."""

from __future__ import annotations

import os
from dataclasses import dataclass

from trainers.channels.distribution import Distribution, check_distribution
from trainers.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of files of any kind, as a channel of a program; see `ScriptTrainer`. Nothing is read before a job.

    Args:
        path: a local folder, or the URI of one (`s3://`, `gs://`, `file://`). All files below it are its own, hidden
            ones too.
        distribution: "FullyReplicated": every worker finds all files. "ShardedByS3Key": every worker finds a part of
            its own, about as many files and bytes as each other worker.

    Raises:
        ConfigurationError: an argument is none of these.
    """

    path: str | os.PathLike[str]
    distribution: Distribution = "FullyReplicated"

    def __post_init__(self) -> None:
        path = os.fspath(self.path) if isinstance(self.path, str | os.PathLike) else None
        if not isinstance(path, str) or not path or "\0" in path:
            raise ConfigurationError(
                f"a Folder has the path {self.path!r}; give a local folder, or a URI (s3://, gs://)"
            )
        check_distribution(self.distribution, "a Folder")
