"""Categories: one code each in all files and on all workers, whatever the source; wrong ones are errors."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings, strategies as st

from tests.support.properties import examples
from tests.support.trainers.channels.rows.categories import FRAME, NAMED, decoded
from trainers import Channel


@settings(max_examples=examples(25))
@given(st.permutations(range(4)), st.integers(1, 4), st.lists(st.integers(0, 3), min_size=12, max_size=12))
def test_codes_of_files_do_not_depend_on_their_order_and_the_workers(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], workers: int, files: list[int]
) -> None:
    folder = tmp_path_factory.mktemp("files")
    for number in range(4):
        part = FRAME[[file == number for file in files]]
        (part if len(part) else FRAME[:1]).to_csv(folder / f"{number}.csv", index=False)
    one = Channel.of(f"{folder}/*.csv", categorical=NAMED)
    other = Channel.of([str(folder / f"{number}.csv") for number in order], categorical=NAMED)
    assert one.coding == other.coding
    held = pd.concat([other.read(rank, workers).features for rank in range(workers)])
    assert sorted(map(str, decoded(held))) == sorted(map(str, decoded(one.read_whole().features)))
