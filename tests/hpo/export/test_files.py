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
from hypothesis import HealthCheck, given, settings, strategies as st
from pyarrow import csv, parquet
from typer.testing import CliRunner

from hpo.cli import app
from hpo.export import files, to_csv, to_parquet
from hpo.export.columns import job_tables, value_column
from hpo.record.store import JobRow, LedgerRow, ReportRow, Store, TrialRow
from hpo.record.tables import decode
from tests.support.bad_input import STATIC, make, rows
from tests.support.recorded import METRIC, record
from tests.support.refusals import mentions, refuses
from trainers.errors import ConfigurationError, WarmbandError

ROWS = {"trials": TrialRow, "reports": ReportRow, "ledger": LedgerRow}


def url(folder: Path) -> str:
    return f"sqlite:///{folder}/store.db"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with a job of eight trials."""
    opened = Store(url(tmp_path))
    record(opened, "job", 8)
    return opened


def read_parquet(file: Path) -> pa.Table:
    return parquet.read_table(file)


def read_csv(file: Path) -> pa.Table:
    """As the page on exporting says."""
    options = csv.ConvertOptions(null_values=[""], strings_can_be_null=True, quoted_strings_can_be_null=False)
    return csv.read_csv(file, convert_options=options, parse_options=csv.ParseOptions(newlines_in_values=True))


def rows_of(kind: type, table: pa.Table) -> list[Any]:
    """The rows that a table was made of."""
    found = []
    for values in table.to_pylist():
        nested: dict[str, Any] = {}
        for name in ("hyperparameters", "metrics", "details"):
            if name in kind.__dataclass_fields__:
                nested[name] = {
                    key.partition(".")[2]: value
                    for key, value in values.items()
                    if key.startswith(f"{name}.") and value is not None
                }
        if "details" in nested:
            nested["details"] = decode(json.loads(values["details"]))
            nested["files"] = json.loads(values["files"])
            nested["turns"] = json.loads(values["turns"])
            nested["stopped"] = json.loads(values["stopped"])
            nested["believed"] = json.loads(values["believed"])
        plain = {key: value for key, value in values.items() if "." not in key}
        found.append(kind(**{**plain, **nested}))
    return found


def same(one: Any, other: Any) -> bool:
    """Equal, where NaN is NaN and None in a dict is as good as nothing."""
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    if isinstance(one, dict):
        one, other = ({key: value for key, value in each.items() if value is not None} for each in (one, other))
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if dataclasses.is_dataclass(one):
        return all(same(getattr(one, each.name), getattr(other, each.name)) for each in dataclasses.fields(one))
    return bool(one == other)


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


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    TEXT,
    st.sampled_from(["NaN", "nan", "", " ", '"', "a,b\r\n"]),
)
KEYS = st.text("abz:./ ,\"'é", min_size=1, max_size=4)
METRICS = st.dictionaries(KEYS, st.floats(), max_size=3)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(
    reports=st.lists(st.tuples(METRICS, st.none() | NUMBERS, NUMBERS), min_size=1, max_size=5),
    failures=st.lists(TEXT, max_size=4),
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_rows_come_back(tmp_path_factory: Any, reports: list[Any], failures: list[str]) -> None:
    folder = tmp_path_factory.mktemp("any")
    with Store(url(folder)) as store:
        store.create_job(JobRow(name="job", created_at=1.0))
        with store.writer("job") as writer:
            for step, (metrics, objective, at) in enumerate(reports, 1):
                writer.report(
                    ReportRow(job="job", trial_id="t", step=step, objective=objective, metrics=metrics, at=at)
                )
            for number, failure in enumerate(failures):
                writer.trial(TrialRow(job="job", trial_id=f"t{number}", number=number, failure_reason=failure))
        for write, read in ((to_parquet, read_parquet), (to_csv, read_csv)):
            trials, rows, _ = write("job", folder / write.__name__, store=store.url)
            found = rows_of(ReportRow, read(rows))
            if write is to_parquet:
                assert all(same(one, other) for one, other in zip(store.reports("job"), found, strict=True))
            else:  # What was never a number but null is of no type to a reader of text.
                assert [row.step for row in found] == [row.step for row in store.reports("job")]
            texts = [str(row.failure_reason) for row in rows_of(TrialRow, _typed(trials))] if failures else []
            assert texts == [row.failure_reason for row in store.trials("job")]


def _typed(file: Path) -> pa.Table:
    """Trials with their texts as text, since text may look like a number."""
    if file.suffix == ".parquet":
        return read_parquet(file)
    options = csv.ConvertOptions(
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        column_types={"failure_reason": pa.string(), "job": pa.string(), "trial_id": pa.string()},
    )
    return csv.read_csv(file, convert_options=options, parse_options=csv.ParseOptions(newlines_in_values=True))


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


def test_the_command_says_what_it_wrote_and_what_is_wrong(store: Store, tmp_path: Path) -> None:
    def hpo(*arguments: str) -> Any:
        return CliRunner(env={"COLUMNS": "300"}).invoke(app, ["export", *arguments, "--store", url(tmp_path)])

    done = hpo("job", "--format", "parquet", "-o", str(tmp_path / "out"))
    for line, name in zip(done.stdout.splitlines(), ROWS, strict=True):
        mentions(line, f"{tmp_path}/out/{name}.parquet")
    mentions(str(hpo("job", "--format", "csv", "-o", str(tmp_path / "out")).exception), f"{tmp_path}/out")
    mentions(str(hpo("jib", "--format", "csv", "-o", str(tmp_path / "new")).exception), "jib", "job", url(tmp_path))
    assert hpo("job", "--format", "xlsx", "-o", "x").exit_code == 2
    assert METRIC in read_parquet(tmp_path / "out" / "reports.parquet").column_names[4]


def test_the_untuned_run_has_its_end_and_its_hyperparameters(tmp_path: Path) -> None:
    store = url(tmp_path)
    tuner = make(0, store=store, storage_path=str(tmp_path / "models"), max_jobs=2)
    tuner.fit({"train": rows(), "validation": rows()}, job_name="job")
    to_parquet("job", tmp_path / "job", store=store)
    table = parquet.read_table(tmp_path / "job" / "trials.parquet").to_pylist()
    untuned = next(row for row in table if row["number"] == -1)
    assert untuned["started_at"] <= untuned["ended_at"]
    assert {name: untuned[f"hyperparameters.{name}"] for name in STATIC} == STATIC
    assert all(row["hyperparameters.num_round"] is None for row in table if row["number"] >= 0)
