"""Blocks of rows: all rows in order, none larger than asked for, and each query whole in one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st
from scipy.sparse import csr_matrix

from trainers.channels.blocks import in_blocks, joined
from trainers.channels.rows import QID, framed, unframed
from trainers.channels.table import Table

WIDTH = 3


def table(features: Any, start: int, **said: Any) -> Table:
    labels = np.arange(start, start + features.shape[0], dtype=np.float32)
    return Table(features=features, labels=labels, feature_names=None, said=said)


def features_of(kind: str, rows: int) -> Any:
    numbers = np.arange(rows * WIDTH, dtype=np.float32).reshape(rows, WIDTH)
    if kind == "sparse":
        return csr_matrix(numbers)
    return pd.DataFrame(numbers).assign(town=pd.Categorical(["u"] * rows, ["u", "v"])) if kind == "frame" else numbers


@pytest.mark.parametrize("kind", ["dense", "sparse", "frame"])
@given(lengths=st.lists(st.integers(1, 30), min_size=1, max_size=8), most=st.integers(1, 600))
def test_rows_come_in_order_in_blocks_of_the_size_asked_for(kind: str, lengths: list[int], most: int) -> None:
    starts = np.cumsum([0, *lengths])
    pieces = [table(features_of(kind, length), start) for length, start in zip(lengths, starts, strict=False)]
    blocks = list(in_blocks(pieces, most))
    np.testing.assert_array_equal(np.concatenate([block.labels for block in blocks]), np.arange(starts[-1]))
    bytes_of = {"dense": 4 * WIDTH, "sparse": 8 * WIDTH - 8 / starts[-1], "frame": 4 * (WIDTH + 1)}[kind]
    for block in blocks:
        assert len(block.labels) == block.features.shape[0]
        if kind != "sparse":  # Whose first row has an entry less, so that pieces differ.
            assert len(block.labels) <= max(1, most // bytes_of)
    whole, given_ = joined(blocks), joined(pieces)
    if kind == "sparse":
        assert (whole.features != given_.features).nnz == 0
    else:
        np.testing.assert_array_equal(np.asarray(whole.features), np.asarray(given_.features))


@given(sizes=st.lists(st.integers(1, 12), min_size=1, max_size=20), cut=st.integers(1, 9), most=st.integers(1, 300))
def test_a_query_is_whole_in_one_block(sizes: list[int], cut: int, most: int) -> None:
    queries = np.repeat(np.arange(len(sizes), dtype=np.uint32), sizes)

    def pieces() -> Iterator[Table]:
        for start in range(0, len(queries), cut):
            mine = queries[start : start + cut]
            yield table(features_of("dense", len(mine)), start, **{QID: mine})

    blocks = list(in_blocks(pieces(), most))
    np.testing.assert_array_equal(np.concatenate([block.labels for block in blocks]), np.arange(len(queries)))
    seen: set[int] = set()
    for block in blocks:
        mine = set(block.said[QID].tolist())
        assert not mine & seen
        seen |= mine
        # Beyond the size asked for it is at most a piece, or the rest of a query.
        assert len(block.labels) <= cut + max(*sizes, most // (4 * WIDTH), 1), (
            "beyond the size asked for, at most a piece and a query"
        )


def test_numbers_and_categories_are_those_of_the_frame() -> None:
    frame = pd.DataFrame({"x": np.float32([1, np.nan, 3]), "k": pd.Categorical(["b", None, "a"], ["b", "a", "c"])})
    codes, coding = unframed(frame)
    np.testing.assert_array_equal(codes, np.float32([[1, 0], [np.nan, np.nan], [3, 1]]))
    pd.testing.assert_frame_equal(framed(codes, ("x", "k"), coding), frame)
