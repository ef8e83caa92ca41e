"""The bins of the rows that a gang trains on: the same for any number of workers."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from trainers.channels import WEIGHT, Coding, PlacedChannel, Table, in_blocks, is_sparse, unframed
from trainers.errors import WarmbandError
from trainers.xgboost.matrices import (
    BLOCK_BYTES,
    Counter,
    Cuts,
    Kind,
    Spooled,
    as_arguments,
    cut_columns,
    has_categories,
    made_apart,
    numbers_of,
    reference,
    within,
)
from trainers.xgboost.rounds import Peers, sum_over

SKETCHED = 8 << 20
"""Numbers that XGBoost finds bins of itself; of more, the workers count them together."""


def shared_bins(kind: Kind, rows: Table | Spooled, channel: PlacedChannel, peers: Peers, threads: int) -> Any:
    """Return a matrix with the bins that all workers' rows get, or None where one worker finds its own.

    Bins of few rows are those that XGBoost finds of all rows on one worker: rank 0 reads all rows for it. XGBoost's
    bins of many rows depend on the number of workers and on the order of rows, so those are found by counting. Every
    worker calls this.

    Args:
        kind: how rows are held; it says how many bins a column has.
        rows: this worker's.
        channel: where they come from.
        peers: this worker among the others.
        threads: that this worker holds.

    Raises:
        WarmbandError, OSError: rank 0 cannot read the rows again; on every worker.
    """
    add, (_, max_bin) = sum_over(peers.world_size), kind
    numbers = rows.numbers if isinstance(rows, Spooled) else numbers_of(rows.features)
    few = int(add(np.array([numbers]))[0]) <= SKETCHED
    if few and peers.world_size == 1:
        return None
    blocks = rows.blocks if isinstance(rows, Spooled) else partial(in_blocks, [rows], BLOCK_BYTES)
    first = next(blocks())
    if few:
        found = _of_one(max_bin, channel, peers, threads)
    else:
        width = int(first.features.shape[1])
        counter = Counter(blocks, width, add, peers.greatest, rows.said.get(WEIGHT))
        found = cut_columns(counter.cells(max_bin), width, max_bin)
    return reference(
        found,
        max_bin,
        threads,
        names=first.feature_names,
        coding=_coding(first.features),
        sparse=is_sparse(first.features),
    )


def _of_one(max_bin: int, channel: PlacedChannel, peers: Peers, threads: int) -> Cuts:
    """XGBoost's cuts of all rows, which rank 0 has it find."""
    found: Cuts | Exception | None = None
    if peers.rank == 0:
        try:
            whole = channel.read_whole()
        except (WarmbandError, OSError) as error:
            found = error
        else:
            width = int(whole.features.shape[1])
            matrix = made_apart(**as_arguments(whole), max_bin=max_bin, nthread=threads)
            counter = Counter(lambda: [whole], width, np.asarray, np.asarray, whole.said.get(WEIGHT))
            found = within(counter.bounds(), width, *matrix.get_quantile_cut())
    found = peers.of_first(found)
    if isinstance(found, Exception):
        raise found
    assert found is not None, "rank 0 found cuts, or an error"
    return found


def _coding(features: Any) -> Coding:
    return unframed(features.iloc[:0])[1] if has_categories(features) else {}
