"""A store with a job, and readers of exported files."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import strategies as st
from pyarrow import csv, parquet

from hpo.record.store import LedgerRow, ReportRow, Store, TrialRow
from hpo.record.tables import decode
from tests.support.recorded import record

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


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)
