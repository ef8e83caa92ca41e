"""`Folder`: what a user gives for a channel that is a folder of files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal, get_args

from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError

Distribution = Literal["FullyReplicated", "ShardedByS3Key"]
"""How files come to the workers, in SageMaker's words; `ShardedByS3Key` is for files on disks, too."""

WHOLE, SHARDED = get_args(Distribution)


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
        if self.distribution not in (WHOLE, SHARDED):
            raise ConfigurationError(
                f"a Folder has distribution={self.distribution!r}; give {WHOLE!r} or {SHARDED!r}"
                f"{did_you_mean(self.distribution, (WHOLE, SHARDED))}"
            )
