"""A job's rows as tables of typed columns: trials, reports and billed seconds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from types import NoneType
from typing import Any, get_args, get_type_hints

import pyarrow as pa

from hpo.record import LedgerRow, ReportRow, Store, TrialRow, encode

LARGEST_WHOLE = 2**53
"""Doubles hold every whole number up to here."""

_TYPES = {int: pa.int64(), float: pa.float64()}


def job_tables(store: Store, name: str) -> dict[str, pa.Table]:
    """A job's rows: `trials`, the un-tuned run among them, `reports` and `ledger`.

    A field of a row is a column of the same name. Hyperparameters and metrics have a column each, such as
    "hyperparameters.eta": whole numbers, doubles (NaN and infinities among them), booleans or text; of more than one
    kind, JSON. `details`, `files`, `turns`, `believed` and `stopped` are JSON. Where a row has no value, or None, it is
    null.

    Raises:
        ConfigurationError: the store has no such job.
    """
    # Trials last: while a job runs, no report is without its trial.
    ledger, reports, trials = store.ledger(name), store.reports(name), store.trials(name)
    return {
        "trials": _table(TrialRow, trials),
        "reports": _table(ReportRow, reports),
        "ledger": _table(LedgerRow, ledger),
    }


def _table(kind: type, rows: Sequence[Any]) -> pa.Table:
    hints = get_type_hints(kind)
    columns: dict[str, pa.Array] = {}
    for each in fields(kind):
        options = [option for option in get_args(hints[each.name]) if option is not NoneType]
        values = [getattr(row, each.name) for row in rows]
        if each.name in ("hyperparameters", "metrics"):
            columns |= {f"{each.name}.{key}": value_column(values, key) for key in _keys(values)}
        elif each.name in ("details", "files", "turns", "believed", "stopped"):
            columns[each.name] = pa.array([as_json(value) for value in values], pa.string())
        else:
            columns[each.name] = pa.array(values, _TYPES.get(options[0] if options else hints[each.name], pa.string()))
    return pa.table(columns)


def _keys(values: Iterable[Mapping[str, Any]]) -> list[str]:
    """The keys of all of them, in the order in which they come up."""
    return list(dict.fromkeys(key for value in values for key in value))


def value_column(rows: Sequence[Mapping[str, Any]], key: str) -> pa.Array:
    """One key's values, of the type that holds all of them."""
    values = [row.get(key) for row in rows]
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float} and all(abs(v) <= LARGEST_WHOLE for v in values if type(v) is int):
        kinds = {float}
    if kinds == {int} and not all(-(2**63) <= value < 2**63 for value in values if value is not None):
        kinds = set()
    for kind, arrow in ((bool, pa.bool_()), (int, pa.int64()), (float, pa.float64()), (str, pa.string())):
        if kinds <= {kind} and kinds:
            return pa.array(values, arrow)
    return pa.array([as_json(row[key]) if key in row else None for row in rows], pa.string())


def as_json(value: Any) -> str:
    """Strict JSON of what the store holds: what is not finite is a word, as in the store itself."""
    return json.dumps(encode(value), allow_nan=False)
