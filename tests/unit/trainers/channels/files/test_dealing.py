"""Shards partition the rows alike for every source, and no worker reads more than its part needs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.support.tables import frame, rows_of, same
from trainers.channels import Channel
from trainers.channels.files.dealing import deal
from trainers.channels.files.files import Files
from trainers.channels.files.shares import File


@given(weights=st.lists(st.integers(1, 1000), min_size=1, max_size=30), world_size=st.integers(1, 8))
def test_what_is_read_whole_is_handed_out_once_and_in_balance(weights: list[int], world_size: int) -> None:
    dealt = deal(weights, world_size)
    handed_out = [index for share in dealt.whole for index in share] + list(dealt.by_row)
    assert sorted(handed_out) == list(range(len(weights)))
    if not any(dealt.whole):
        return
    loads = [sum(weights[index] for index in share) for share in dealt.whole]
    assert min(loads) > 0
    rest, mean = sum(weights[index] for index in dealt.by_row) / world_size, sum(weights) / world_size
    assert max(loads) + rest <= 1.1 * mean
    assert not dealt.by_row or min(loads) + rest >= 0.9 * mean


@given(weights=st.lists(st.integers(0, 1000), min_size=1, max_size=30), world_size=st.integers(1, 8))
def test_what_is_left_goes_to_few_ranks_and_leaves_them_in_balance(weights: list[int], world_size: int) -> None:
    dealt = deal(weights, world_size)
    assert len(dealt.turns) == len(dealt.by_row)
    loads = [float(sum(weights[index] for index in share)) for share in dealt.whole]
    for index, turns in zip(dealt.by_row, dealt.turns, strict=True):
        for rank in turns:
            loads[rank] += weights[index] / len(turns)
    mean, rounded = sum(weights) / world_size, max(weights) / world_size / 8
    assert not dealt.by_row or (0.9 * mean - rounded <= min(loads) + 1e-6 and max(loads) <= 1.1 * mean + rounded + 1e-6)
    # Each rank but the first may share a piece with the one before.
    assert sum(len(set(turns)) for turns in dealt.turns) <= len(dealt.by_row) + world_size - 1


@pytest.mark.parametrize(
    ("groups", "world_size", "read"), [(20, 4, 20), (8, 3, 10), (10, 4, 12), (3, 4, 6), (1, 4, 4), (21, 4, 24)]
)
def test_row_groups_are_read_once_but_for_those_that_ranks_share(
    tmp_path: Path, groups: int, world_size: int, read: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame(100 * groups).to_parquet(tmp_path / "data.parquet", row_group_size=100)
    monkeypatch.setattr("trainers.channels.files.files.QUICK_BYTES", 0)
    channel, noted = Channel.of(tmp_path / "data.parquet", target="y"), decoded(monkeypatch)
    held = [rows_of(channel.read(rank, world_size)) for rank in range(world_size)]
    assert sum(rows for _, rows in noted) == 100 * read
    assert sorted(np.concatenate(held)) == list(range(100 * groups))
    assert max(map(len, held)) - min(map(len, held)) <= 2


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_large_files_of_any_size_are_read_by_those_alone_who_have_rows_of_them(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = frame(400)
    for number, (start, stop) in enumerate([(0, 300), (300, 400)]):
        part, path = data.iloc[start:stop], tmp_path / f"part-{number}.{kind}"
        part.to_csv(path, index=False, float_format="%012.6f") if kind == "csv" else part.to_parquet(path)
    monkeypatch.setattr("trainers.channels.files.files.QUICK_BYTES", 0)
    channel, noted = Channel.of(tmp_path, target="y"), decoded(monkeypatch)
    held, seen = [], []
    for rank in range(4):
        noted.clear()
        held.append(rows_of(channel.read(rank, 4)))
        seen.append({name for name, _ in noted})
    assert sum(map(len, seen)) <= 5
    assert sorted(np.concatenate(held)) == list(range(400))
    assert all(95 <= len(rows) <= 105 for rows in held)


@pytest.mark.parametrize(
    ("files", "world_size", "whole", "by_row"), [(8, 3, 2, 2), (10, 4, 2, 2), (20, 8, 2, 4), (6, 3, 2, 0)]
)
def test_no_worker_reads_every_file(files: int, world_size: int, whole: int, by_row: int) -> None:
    dealt = deal([100] * files, world_size)
    assert [len(share) for share in dealt.whole] == [whole] * world_size
    assert len(dealt.by_row) == by_row


def decoded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """Of each block that is read from now on: its file's name, and how many rows it has."""
    noted: list[tuple[str, int]] = []
    blocks = Files._blocks

    def read(self: Files, file: File, *groups: Any) -> Iterator[Any]:
        for block in blocks(self, file, *groups):
            noted.append((Path(file.path).name, block.num_rows))
            yield block

    monkeypatch.setattr(Files, "_blocks", read)
    return noted


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_of_eight_files_three_workers_read_half_each(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = frame(8 * 30)
    for number in range(8):
        part, path = data.iloc[30 * number : 30 * (number + 1)], tmp_path / f"part-{number}.{kind}"
        part.to_csv(path, index=False, float_format="%012.6f") if kind == "csv" else part.to_parquet(path)
    channel, held, noted = Channel.of(tmp_path, target="y"), [], decoded(monkeypatch)
    for rank in range(3):
        noted.clear()
        held.append(rows_of(channel.read(rank, 3)))
        assert len({name for name, _ in noted}) == 4
    assert [len(rows) for rows in held] == [80, 80, 80]
    assert sorted(np.concatenate(held)) == list(range(240))


def test_a_large_parquet_file_is_decoded_by_all_workers_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame(700).to_parquet(tmp_path / "data.parquet", row_group_size=100)
    channel, noted = Channel.of(tmp_path / "data.parquet", target="y"), decoded(monkeypatch)
    small = [rows_of(channel.read(rank, 3)) for rank in range(3)]
    assert [rows.tolist() for rows in small] == [list(range(rank, 700, 3)) for rank in range(3)]
    assert sum(rows for _, rows in noted) == 3 * 700
    monkeypatch.setattr("trainers.channels.files.files.QUICK_BYTES", 0)
    held = []
    for rank in range(3):
        noted.clear()
        held.append(rows_of(channel.read(rank, 3)))
        assert sum(rows for _, rows in noted) == 300, "two row groups of its own, and the one that all share"
    assert sorted(len(rows) for rows in held) == [233, 233, 234]
    assert sorted(np.concatenate(held)) == list(range(700))
    same(channel.read_whole(), Channel.of(frame(700)).read_whole())


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_even_files_are_read_whole_and_uneven_ones_by_row(tmp_path: Path, kind: str) -> None:
    data = frame(120)
    cuts = {"even": [0, 30, 60, 90, 120], "uneven": [0, 100, 105, 110, 120]}
    for name, edges in cuts.items():
        (tmp_path / name).mkdir()
        for number, (start, stop) in enumerate(pairwise(edges)):
            part, path = data.iloc[start:stop], tmp_path / name / f"part-{number}.{kind}"
            part.to_csv(path, index=False) if kind == "csv" else part.to_parquet(path)
    (tmp_path / "even" / "_SUCCESS").touch()

    even = Channel.of(tmp_path / "even", target="y")
    held = [rows_of(even.read(rank, 2)) for rank in range(2)]
    assert sorted(np.concatenate(held)) == list(range(120))
    # 60 rows that touch two of the four files: two files whole.
    assert all(len(rows) == 60 and len(set(rows // 30)) == 2 for rows in held)

    uneven = Channel.of(str(tmp_path / "uneven" / "part-?.*"), target="y")
    assert rows_of(uneven.read(1, 3)).tolist() == list(range(1, 120, 3))
    same(uneven.read_whole(), Channel.of(data).read_whole())
    # More workers than files.
    assert rows_of(even.read(4, 5)).tolist() == list(range(4, 120, 5))
