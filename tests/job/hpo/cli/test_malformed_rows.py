"""A record with a row that cannot be read: the other jobs are listed, and the row is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sqlalchemy as sa

from hpo.record.store import Store
from tests.support.listed import hpo, job
from tests.support.refusals import mentions
from tests.support.rows import sqlite_url


@pytest.mark.parametrize(
    "values",
    [{"spec": "{"}, {"spec": "[]"}, {"spec": "{}"}, {"created_at": "yesterday"}, {"summary": "7"}, {"driver": "[1]"}],
    ids=str,
)
def test_one_malformed_row_hides_no_other_job(tmp_path: Path, values: dict[str, str]) -> None:
    with Store(sqlite_url(tmp_path)) as store:
        for name in ("good", "bad", "other"):
            job(store, name, values=[0.5, 0.75])
        with store._engine.begin() as connection:
            for column, value in values.items():
                statement = sa.text(f"UPDATE jobs SET {column} = :value WHERE name = 'bad'")
                connection.execute(statement, {"value": value})
    said = hpo("jobs", "--store", sqlite_url(tmp_path))
    mentions(said, "good", "other")
    listed = json.loads(hpo("jobs", "--json", "--store", sqlite_url(tmp_path)))
    assert {each["HyperParameterTuningJobName"] for each in listed} >= {"good", "other"}
