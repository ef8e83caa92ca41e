"""Distribution of a channel's files over the workers, in SageMaker's words."""

from __future__ import annotations

from typing import Any, Literal, get_args

from trainers.checking import did_you_mean
from trainers.errors import ConfigurationError

Distribution = Literal["FullyReplicated", "ShardedByS3Key"]
"""How files come to the workers: all to each, or each to one; `ShardedByS3Key` is for files on disks, too."""

WHOLE, SHARDED = get_args(Distribution)


def check_distribution(given: Any, what: str) -> None:
    """Refuses what is none.

    Raises:
        ConfigurationError: naming `what` has it.
    """
    if given not in (WHOLE, SHARDED):
        raise ConfigurationError(
            f"{what} has distribution={given!r}; give {WHOLE!r} or {SHARDED!r}{did_you_mean(given, (WHOLE, SHARDED))}"
        )
