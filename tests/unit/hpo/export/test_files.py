"""Parquet and CSV files hold the store's rows, and nothing is overwritten or left half."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pandas
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from pyarrow import csv

from hpo.export import files, to_csv, to_parquet
from hpo.export.columns import job_tables, value_column
from hpo.record.store import JobRow, Store
from hpo.record.tables import decode
from tests.support.hpo.export.files import (
    ROWS,
    TEXT,
    read_csv,
    read_parquet,
    rows_of,
    same,
    store,  # noqa: F401  # Fixtures.
    url,
)
from tests.support.recorded import record
from tests.support.refusals import refuses
from trainers.errors import ConfigurationError, WarmbandError


@pytest.mark.parametrize(("write", "read"), [(to_parquet, read_parquet), (to_csv, read_csv)])
def test_files_hold_the_stores_rows(store: Store, tmp_path: Path, write: Any, read: Any) -> None:
    written = write("job", tmp_path / "out", store=url(tmp_path))
    assert [file.stem for file in written] == ["trials", "reports", "ledger"]
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == sorted(file.name for file in written)
    for file, kind in zip(written, ROWS.values(), strict=True):
        expected = getattr(store, file.stem)("job")
        found = rows_of(kind, read(file))
        if file.stem == "trials":  # One kind of value a column: JSON where a choice has several.
            expected = [
                dataclasses.replace(
                    row,
                    hyperparameters={
                        key: json.dumps(value) if key == "like one" else value
                        for key, value in row.hyperparameters.items()
                    },
                )
                for row in expected
            ]
        assert len(found) == len(expected) > 5
        assert all(same(one, other) for one, other in zip(expected, found, strict=True))


def test_pandas_reads_the_numbers_of_a_csv_file(store: Store, tmp_path: Path) -> None:
    [_, reports, _] = to_csv("job", tmp_path / "out", store=url(tmp_path))
    frame = pandas.read_csv(reports)
    expected = [row.metrics["train:loss"] for row in store.reports("job") if row.trial_id != "untuned"]
    assert -math.inf in expected
    assert list(frame[frame.trial_id != "untuned"]["metrics.train:loss"]) == expected


SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    TEXT,
    st.sampled_from(["NaN", "nan", "", " ", '"', "a,b\r\n"]),
)


@given(st.lists(st.none() | SCALARS, min_size=1, max_size=6))
def test_a_column_holds_any_values(values: list[Any]) -> None:
    rows = [{"x": value} if value is not None or number % 2 else {} for number, value in enumerate(values)]
    column = value_column(rows, "x")
    kinds = {type(value) for value in values if value is not None}
    as_json = len(kinds) != 1 or (kinds == {int} and any(not -(2**63) <= v < 2**63 for v in values if v is not None))
    as_json = as_json and not pa.types.is_floating(column.type)
    for row, found in zip(rows, column.to_pylist(), strict=True):
        if as_json and "x" in row:
            found = decode(json.loads(found))
            assert type(found) is type(row["x"])
        assert same(row.get("x"), found)


def test_a_job_without_rows_is_three_tables_without_rows(tmp_path: Path) -> None:
    with Store(url(tmp_path)) as store:
        store.create_job(JobRow(name="job", created_at=1.0))
        assert [table.num_rows for table in job_tables(store, "job").values()] == [0, 0, 0]
    [trials, _, _] = to_csv("job", tmp_path / "out", store=url(tmp_path))
    assert trials.read_text().startswith('"job","trial_id","number"')


def test_a_running_job_is_exported_as_it_is(tmp_path: Path) -> None:
    with Store(url(tmp_path)) as store:
        record(store, "job", 8, ended=False)
    [trials, _, _] = to_parquet("job", tmp_path / "out", store=url(tmp_path))
    found = read_parquet(trials).to_pylist()
    assert found[4]["status"] == "Running"
    assert found[4]["ended_at"] is None


def test_what_is_there_is_not_overwritten(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine")
    for name in ("file", "full"):
        with refuses(ConfigurationError, field="folder", value=str(tmp_path / name)):
            to_csv("job", tmp_path / name, store=url(tmp_path))
    with refuses(ConfigurationError, field="folder", value="s3://bucket/jobs", remedy="local"):
        to_csv("job", "s3://bucket/jobs", store=url(tmp_path))
    (tmp_path / "empty").mkdir()
    assert to_csv("job", tmp_path / "empty", store=url(tmp_path))[0].exists()
    assert to_csv("job", tmp_path / "some" / "where", store=url(tmp_path))[0].exists()


def test_what_cannot_be_written_leaves_nothing(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = job_tables(store, "job")

    def no_room(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "job_tables", lambda *_: {"trials": tables["trials"], "reports": None})
    monkeypatch.setattr(csv, "write_csv", no_room)
    with refuses(WarmbandError, field=str(tmp_path / "out"), value="No space left on device"):
        to_csv("job", tmp_path / "out", store=url(tmp_path))
    assert not list(tmp_path.glob("*out*"))
