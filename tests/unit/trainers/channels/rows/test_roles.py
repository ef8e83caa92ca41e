"""Roles of columns: weights, margins and bounds come with their rows from every source, and wrong ones are errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from tests.support.refusals import missing_names, refuses, refuses_each
from tests.support.trainers.channels.rows.roles import FRAME, QUERIES, ROWS, SAID
from trainers import Channel, ConfigurationError, DataError
from trainers.channels import interleave
from trainers.channels.rows import ROLES, Queries, Roles

TIMES = {"label_lower_bound": "m0", "label_upper_bound": "m1"}


def csv(folder: Path) -> Channel:
    for number, part in enumerate((FRAME[:9], FRAME[9:17], FRAME[17:])):
        part.to_csv(folder / f"part-{number}.csv", index=False)
    return Channel.of(f"{folder}/part-*.csv", **SAID)


def parquet(folder: Path) -> Channel:
    FRAME.to_parquet(folder / "rows.parquet", row_group_size=5)
    return Channel.of(f"{folder}/rows.parquet", **SAID)


def parts(folder: Path) -> Channel:
    said = {"weight": FRAME["w"], "base_margin": FRAME[["m0", "m1"]].to_numpy()}
    return Channel.of((FRAME[["x", "z"]], FRAME["y"], said))


def array(folder: Path) -> Channel:
    return Channel.of(FRAME.to_numpy(), weight=2, base_margin=[4, -1])


SOURCES: list[Callable[[Path], Channel]] = [csv, parquet, parts, array, lambda folder: Channel.of(FRAME, **SAID)]


@pytest.mark.parametrize("source", SOURCES)
def test_what_is_said_of_rows_comes_with_them_to_their_worker(
    source: Callable[[Path], Channel], tmp_path: Path
) -> None:
    channel = source(tmp_path)
    assert sorted(channel.said) == ["base_margin", "weight"]
    shards = [channel.read(rank, 3) for rank in range(3)]
    found = [(*row, label) for shard in shards for row, label in zip(shard.features, shard.labels, strict=True)]
    at = [
        next(i for i, of in enumerate(FRAME[["x", "z", "y"]].to_numpy().tolist()) if np.allclose(of, row))
        for row in found
    ]
    assert sorted(at) == list(range(ROWS))
    for role, columns in SAID.items():
        expected = FRAME[columns].to_numpy()[at]
        np.testing.assert_allclose(np.concatenate([shard.said[role] for shard in shards]), expected, rtol=1e-6)
    whole = channel.read_whole()
    np.testing.assert_allclose(whole.said["weight"], FRAME["w"], rtol=1e-6)


def test_a_digest_is_of_what_is_said_too() -> None:
    other = FRAME.assign(w=FRAME["w"] * 2)
    assert Channel.of(FRAME, **SAID).fingerprint() != Channel.of(other, **SAID).fingerprint()
    assert Channel.of(FRAME, weight="w").fingerprint() != Channel.of(FRAME).fingerprint()


def test_labels_with_bounds_alone_are_the_lower_ones() -> None:
    frame = pd.DataFrame({"lo": [1.0, 2.0], "hi": [1.0, np.inf], "x": [0.5, 1.5]})
    table = Channel.of(frame, label_lower_bound="lo", label_upper_bound="hi").read_whole()
    assert table.labels.tolist() == [1, 2]
    assert table.said["label_upper_bound"].tolist() == [1, np.inf]
    assert table.feature_names == ("x",)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_wrong_weight_is_named_with_its_file_and_row(tmp_path: Path, kind: str) -> None:
    for number in range(10):
        frame = FRAME.assign(w=FRAME["w"].where(FRAME.index != 17, -1.0) if number == 9 else FRAME["w"])
        path = tmp_path / f"{number}.{kind}"
        frame.to_csv(path, index=False) if kind == "csv" else frame.to_parquet(path, row_group_size=4)
    channel = Channel.of(f"{tmp_path}/*.{kind}", weight="w")
    with refuses(DataError, field=(f"9.{kind}", "row 18", "weight"), value=-1, remedy="0"):
        channel.look(2)
    failed = []
    for rank in range(2):
        try:
            channel.read(rank, 2)
        except DataError as error:
            failed.append(str(error))
    assert [missing_names(text, f"9.{kind}", "row 18", "weight", -1) for text in failed] == [[]]


def test_wrong_values_in_memory_are_named_with_their_row() -> None:
    def opened(said: dict[str, Any], **change: float) -> Callable[[], Channel]:
        return lambda: Channel.of(FRAME.assign(**change), **said)

    lower, upper = TIMES
    refuses_each(
        [
            (opened({"weight": "w"}, w=np.nan), ("row 1", "weight", "nan", 0)),
            (opened({"weight": "w"}, w=1e300), ("row 1", "weight", "inf", 0)),
            (opened(TIMES, m0=-1.0), ("row 1", lower, -1, 0)),
            (opened(TIMES, m0=np.inf, m1=np.inf), ("row 1", lower, "inf", 0)),
            (opened(TIMES, m0=0.0, m1=0.0), ("row 1", upper, 0)),
            (opened(TIMES, m0=1.0, m1=np.nan), ("row 1", upper, "nan", 0)),
            (opened({"base_margin": ["m0", "m1"]}, m1=np.inf), ("row 1", "base_margin", "inf")),
            (opened(TIMES, m0=2.0, m1=1.0), ("row 1", lower, 2, upper, 1)),
        ],
        DataError,
    )


def test_wrong_roles_are_errors() -> None:
    def opened(**said: Any) -> Callable[[], Channel]:
        return lambda: Channel.of(FRAME, **said)

    refuses_each(
        [
            (opened(weight="v"), ("weight", "'v'", "'w'")),
            (opened(weight="y"), ("'y'", "weight", "target")),
            (opened(weight="w", base_margin="w"), ("'w'", "weight", "base_margin")),
            (opened(weight=["w", "z"]), ("weight", ["w", "z"], "column")),
            (opened(label_lower_bound="w"), ("label_lower_bound", "label_upper_bound")),
            (opened(weight=True), ("weight", True, "name", 0)),
        ],
        ConfigurationError,
    )


def test_parts_in_memory_are_as_long_as_their_rows() -> None:
    with refuses(DataError, field="weight", value="(22,)", remedy="23"):
        Channel.of((FRAME[["x"]], FRAME["y"], {"weight": FRAME["w"][1:]}))
    for role in ("weight", "qid"):
        with refuses(DataError, field=role, value=2, remedy="23"):
            Channel.of((FRAME[["x"]], FRAME["y"], {role: FRAME[["m0", "m1"]]}))
    with refuses(DataError, field="base_margin", value=0, remedy="23"):
        Channel.of((FRAME[["x"]], FRAME["y"], {"base_margin": np.ones((ROWS, 0))}))
    with refuses(ConfigurationError, field="weigth", remedy=("'weight'", "base_margin")):
        Channel.of((FRAME[["x"]], FRAME["y"], {"weigth": FRAME["w"]}))


@pytest.mark.parametrize("kind", ["memory", "csv", "parquet"])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_queries_stay_whole(kind: str, workers: int, tmp_path: Path) -> None:
    source: Any = QUERIES
    if kind == "csv":
        for number, part in enumerate((QUERIES[:4], QUERIES[4:])):
            part.to_csv(tmp_path / f"{number}.csv", index=False)
        source = f"{tmp_path}/*.csv"
    elif kind == "parquet":
        QUERIES.to_parquet(source := tmp_path / "rows.parquet", row_group_size=5)
        source = str(source)
    channel = Channel.of(source, qid="q")
    shards = [channel.read(rank, workers) for rank in range(workers)]
    for rank, shard in enumerate(shards):
        assert set(shard.said["qid"]) == set(range(rank, 5, workers))
        ids = QUERIES["q"][shard.labels.astype(int)]
        assert ids.drop_duplicates().tolist() == [
            [7, 3, 90_000_001, 5, 90_000_000][at] for at in sorted(set(shard.said["qid"]))
        ]
    whole = interleave(shards)
    assert whole.labels.tolist() == QUERIES["y"].tolist()
    assert whole.features[:, 0].tolist() == QUERIES["x"].tolist()
    with refuses(DataError, field="queries", remedy="workers"):
        channel.read(5, 6)


@pytest.mark.parametrize(
    ("ids", "names"),
    [
        ([1, 1, 2, 1], ("row 4", "query 1")),
        ([1, 2, 2.5, 3], ("row 3", "qid", "2.5")),
        ([1, np.nan, 2, 3], ("row 2", "qid", "nan")),
    ],
)
def test_queries_that_stand_apart_are_errors(ids: list[float], names: tuple[str, ...], tmp_path: Path) -> None:
    frame = pd.DataFrame({"y": [0.0, 1.0, 0.0, 1.0], "q": ids, "x": 1.0})
    with refuses(DataError, field=names):
        Channel.of(frame, qid="q")
    frame.to_parquet(tmp_path / "rows.parquet")
    with refuses(DataError, field=("rows.parquet", *names)):
        Channel.of(str(tmp_path / "rows.parquet"), qid="q").look()


def test_a_query_that_is_split_over_files_is_named_with_file_and_row(tmp_path: Path) -> None:
    for number, part in enumerate((QUERIES[:6], QUERIES[6:])):
        part.to_csv(tmp_path / f"{number}.csv", index=False)
    with refuses(DataError, field=("1.csv", "row 1"), value=90000001, remedy="file"):
        Channel.of(f"{tmp_path}/*.csv", qid="q").look()


def test_queries_whose_ids_float64_does_not_tell_apart_are_errors(tmp_path: Path) -> None:
    """They would be one query, without a word."""
    frame = pd.DataFrame({"y": [0.0, 1.0], "q": [2**53, 2**53 + 1], "x": 1.0})
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for source in (frame, f"{tmp_path}/rows.parquet", f"{tmp_path}/rows.csv"):
        with refuses(DataError, field=("row 1", "qid"), value=9007199254740992, remedy=("0", "pandas.factorize")):
            Channel.of(source, qid="q").look()
    assert Channel.of(frame.assign(q=[1 - 2**53, 2 - 2**53]), qid="q").read_whole().said["qid"].tolist() == [0, 1]


def test_large_whole_numbers_of_files_are_rounded_as_in_memory(tmp_path: Path) -> None:
    frame = pd.DataFrame({"y": [0.0, 1.0], "x": [2**53 + 1, 3]})
    frame.to_parquet(path := tmp_path / "rows.parquet")
    read = Channel.of(str(path)).read_whole().features
    assert read.tolist() == Channel.of(frame).read_whole().features.tolist()


@pytest.mark.parametrize("kind", ["memory", "csv", "parquet"])
def test_fewer_queries_than_workers_are_an_error_before_any_starts(kind: str, tmp_path: Path) -> None:
    source: Any = QUERIES
    if kind != "memory":
        source = f"{tmp_path}/rows.{kind}"
        QUERIES.to_csv(source, index=False) if kind == "csv" else QUERIES.to_parquet(source)
    channel = Channel.of(source, qid="q")
    channel.look(5)
    with refuses(DataError, field="queries", remedy="workers"):
        channel.look(6)


def test_a_query_has_one_weight_wherever_its_rows_are_cut() -> None:
    ids, weights = np.repeat([4.0, 9.0], 3), np.array([1, 1, 1, 2, 2, 3], np.float32)
    for cut in range(6):
        queries = Queries()
        queries.numbers(ids[:cut], lambda at: at + 1, weights[:cut])
        with refuses(DataError, field=("row 6", "weight", "query"), value=3, remedy="2"):
            queries.numbers(ids[cut:], lambda at, cut=cut: cut + at + 1, weights[cut:])


def test_a_query_has_one_weight() -> None:
    with refuses(DataError, field=("row 2", "weight", "query"), value=1, remedy="0"):
        Channel.of(QUERIES.assign(w=QUERIES["y"]), qid="q", weight="w")


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.lists(st.integers(0, 30), max_size=6))
def test_numbers_of_queries_do_not_depend_on_blocks(lengths: list[int], cuts: list[int]) -> None:
    ids = np.repeat(np.arange(len(lengths)) * 10.0 - 7, lengths)
    queries = Queries()
    blocks = np.split(ids, sorted(min(cut, len(ids)) for cut in cuts))
    found = np.concatenate([queries.numbers(block, lambda place: place) for block in blocks])
    assert found.tolist() == np.repeat(np.arange(len(lengths)), lengths).tolist()


@given(st.permutations(range(6)), st.integers(0, 4))
def test_every_column_is_a_feature_or_has_one_role(places: list[int], count: int) -> None:
    given = dict(zip(ROLES[:2], places[1:], strict=False)) if count else {}
    roles = Roles.of(places[0], given, None, 6)
    taken = [roles.target, *(at for _, of in roles.said for at in of)]
    assert sorted([*roles.features(6), *taken]) == list(range(6))
