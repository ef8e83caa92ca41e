"""Memory and time that workers take to load a channel, from the time that one pass over it took here."""

from __future__ import annotations

from dataclasses import dataclass

from trainers.channels import WHOLE, Channel, Files

COUNTS = (1, 2, 4, 8)
"""Gangs that are told of, where nobody says how many workers there are."""

_LABEL = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What one worker of a gang loads.

    Args:
        workers: of the gang.
        rows: of the one that has most.
        nbytes: of them as float32 and their labels, which every trainer loads.
        seconds: to read them, on a core of its own.
    """

    workers: int
    rows: int
    nbytes: int
    seconds: float


def loads(channel: Channel, rows: int, width: int, seconds: float, counts: tuple[int, ...]) -> tuple[Load, ...]:
    """What a worker of gangs of several sizes loads.

    Args:
        channel: the channel.
        rows: how many it has.
        width: its features.
        seconds: that one process took to read all of it.
        counts: numbers of workers; those of more workers than rows are left out, but where each has all rows.
    """
    each = _LABEL * (width + 1 + len(channel.said))
    whole = channel.distribution == WHOLE
    found = []
    for workers in counts:
        if whole or workers <= rows:
            mine, share = (rows, 1.0) if whole else (-(-rows // workers), _decoded(channel, workers))
            found.append(Load(workers=workers, rows=mine, nbytes=mine * each, seconds=seconds * share))
    return tuple(found)


def _decoded(channel: Channel, workers: int) -> float:
    """The largest share of a channel that one worker decodes."""
    if isinstance(channel.source, Files):
        return max(channel.source.decoded(rank, workers) for rank in range(workers))
    return 1 / workers
