"""Parquet and CSV files hold the store's rows, and nothing is overwritten or left half."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings, strategies as st
from pyarrow import csv, parquet
from typer.testing import CliRunner

from hpo.cli import app
from hpo.export import to_csv, to_parquet
from hpo.record.store import JobRow, ReportRow, Store, TrialRow
from tests.support.bad_input import STATIC, make, rows
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
from tests.support.properties import examples
from tests.support.recorded import METRIC
from tests.support.refusals import mentions

KEYS = st.text("abz:./ ,\"'é", min_size=1, max_size=4)
METRICS = st.dictionaries(KEYS, st.floats(), max_size=3)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


@given(
    reports=st.lists(st.tuples(METRICS, st.none() | NUMBERS, NUMBERS), min_size=1, max_size=5),
    failures=st.lists(TEXT, max_size=4),
)
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
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
