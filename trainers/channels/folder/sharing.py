"""Dealing of a folder's files to workers; pure."""

from __future__ import annotations

from collections.abc import Sequence


def dealt(names: Sequence[str], sizes: Sequence[int], world_size: int) -> tuple[tuple[int, ...], ...]:
    """Which files each rank gets, by number: each file once, and the same ones for as many workers.

    Folder by folder, the next so many largest files go to the ranks, the largest to the one with the fewest bytes. So
    counts differ by one at most, bytes by the largest file at most, and of a folder of `2 * world_size - 1` files
    every rank has some: one folder a class, say, is no class less on a rank.

    Args:
        names: of the files from the folder on, with slashes; no two are the same.
        sizes: in bytes, of each.
        world_size: how many ranks there are.
    """
    order = sorted(range(len(names)), key=lambda file: (names[file].rpartition("/")[0], -sizes[file], names[file]))
    shares: list[list[int]] = [[] for _ in range(world_size)]
    loads = [0] * world_size
    for start in range(0, len(order), world_size):
        # One round may have the end of a folder and the beginning of the next.
        files = sorted(order[start : start + world_size], key=lambda file: (-sizes[file], names[file]))
        lightest_first = sorted(range(world_size), key=lambda rank: (loads[rank], rank))
        for file, rank in zip(files, lightest_first, strict=False):
            shares[rank].append(file)
            loads[rank] += sizes[file]
    return tuple(tuple(sorted(share, key=lambda file: names[file])) for share in shares)
