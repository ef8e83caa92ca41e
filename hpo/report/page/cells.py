"""Cells of a table: text, alignment and sort key of a value."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from numbers import Integral, Real

from hpo.report.page.blocks import Column, Measured, Table
from hpo.text import decimal

NOTHING = "–"  # noqa: RUF001  # the sign for what is not there


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A value as a page shows it.

    Args:
        text: what is read.
        error: its standard error, where it has one.
        number: what it is sorted by; None where it is text, and empty where it is a number that is not finite.
    """

    text: str
    error: str = ""
    number: str | None = None


def cell(value: object, digits: int | None = None) -> Cell:
    """A value as text, with what it is sorted by.

    Args:
        value: text, a number, `Measured`, a time, None, or what JSON can hold.
        digits: digits after the point; None shows four significant ones of what is not whole.
    """
    if value is None:
        return Cell(text=NOTHING, number="")
    if isinstance(value, bool):
        return Cell(text="yes" if value else "no")
    if isinstance(value, Measured):
        return _measured(value, digits)
    if isinstance(value, Integral):
        return Cell(text=f"{int(value):,}", number=str(int(value)))
    if isinstance(value, Real):
        number = float(value)
        return Cell(text=decimal(number, digits), number=repr(number) if math.isfinite(number) else "")
    if isinstance(value, datetime):
        return Cell(text=value.strftime("%Y-%m-%d %H:%M:%S UTC"))
    if isinstance(value, Mapping | list | tuple):
        return Cell(text=json.dumps(value, default=str, ensure_ascii=False))
    return Cell(text=str(value))


def cells_of(table: Table) -> tuple[list[Column], list[list[Cell]]]:
    """A table's columns, and the cells of its rows."""
    columns = [column if isinstance(column, Column) else Column(column) for column in table.columns]
    rows = [[cell(value, column.digits) for column, value in zip(columns, row, strict=True)] for row in table.rows]
    return columns, rows


def with_error(value: float, error: float | None, digits: int | None = None) -> str:
    """A number and its standard error."""
    return " ".join(_pair(value, error, digits)).strip()


def _pair(value: float, error: float | None, digits: int | None) -> tuple[str, str]:
    """A number and its standard error, with digits that show two of the error's, or more where they are asked for."""
    if error is None or not math.isfinite(error) or error <= 0:
        return decimal(value, digits), ""
    shown = min(8, max(digits or 0, 1 - math.floor(math.log10(error))))
    return decimal(value, shown), f"± {decimal(error, shown)}"


def _measured(measured: Measured, digits: int | None) -> Cell:
    value = measured.value
    if value is None:
        return Cell(text=NOTHING, number="")
    text, error = _pair(value, measured.error, digits)
    sign = "+" if measured.signed and value > 0 else ""
    return Cell(text=sign + text, error=error, number=repr(float(value)) if math.isfinite(value) else "")
