"""Preparation of a table's columns: which are features, and how dates, text labels and a sentinel become numbers."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels.rows.categories import Categories, is_text
from trainers.channels.rows.roles import Roles
from trainers.checking import is_number, shown, some_of
from trainers.errors import ConfigurationError, DataError

TRUTH, DATE, ZONED = "truth", "date", "date with a time zone"
"""Kinds of a CSV file's cells that are no plain numbers and become numbers."""

INDEX_NAMES = ("", "Unnamed: 0")
"""Names of the column that pandas' `to_csv` writes an index to."""

_ID = re.compile(r"(?:.*[_\-. ])?(?:id|uuid|guid)", re.IGNORECASE)
_CAMEL_ID = re.compile(r".*[a-z](?:Id|ID|Uuid|UUID)")
_DATE = r"^\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}.*)?$"
_DAY = 86_400_000_000
"""Microseconds."""
_NAMED = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """How a table's cells become numbers, beside the codes of categories.

    Args:
        kinds: kinds of a CSV file's columns, by their places among all, where they are no plain numbers.
        classes: text labels; label number i is trained on as i. None: labels are numbers.
        missing: a number that stands for a missing value among features.
        identifiers: columns that were left out since they identify rows, by their places among all.
        dates: features that hold dates, by name; by place among the features where they have no names.
    """

    kinds: Mapping[int, str] = field(default_factory=dict)
    classes: Categories | None = None
    missing: float | None = None
    identifiers: tuple[int, ...] = ()
    dates: tuple[str, ...] = ()

    def labels(self, column: Any, number: Any) -> NDArray[Any]:
        """Numbers of an Arrow array of labels.

        Args:
            column: the labels.
            number: gives the number of a row for an error, of its place in the array.

        Raises:
            DataError: a text label is none of the classes.
        """
        if self.classes is None:
            return column_numbers(column)
        values = text_of(column)
        return self.classes.codes(values, lambda at: unseen_label(values[at].as_py(), number(at)))

    def without_sentinel(self, numbers: NDArray[Any]) -> NDArray[Any]:
        """The numbers of a feature, NaN in the place of the sentinel."""
        return numbers if self.missing is None else np.where(numbers == self.missing, np.nan, numbers)

    def digest(self) -> tuple[object, ...]:
        """What it adds to a channel's fingerprint; empty where it changes nothing."""
        classes = () if self.classes is None else (("classes", self.classes.digest()),)
        missing = () if self.missing is None else (("missing", self.missing),)
        return (*sorted(self.kinds.items()), *classes, *missing)

    def described(self, columns: Sequence[str] | None) -> dict[str, Any]:
        """Its part of `Channel.describe`."""
        found: dict[str, Any] = {}
        if self.identifiers and columns:
            found["identifiers"] = [columns[at] for at in self.identifiers]
        if self.dates:
            found["dates"] = list(self.dates)
        if self.classes is not None:
            found["classes"] = list(self.classes.values)
        if self.missing is not None:
            found["missing"] = self.missing
        return found


def unseen_label(value: Any, row: int) -> DataError:
    """The error about a text label of no row that is trained on."""
    return DataError(
        f"row {row}: the label is {value!r}, a class of no row that is trained on; leave the row out, or add rows of "
        "that class to 'train'"
    )


def classes_of(found: Collection[str | int]) -> Categories:
    """Text labels as classes, in sorted order.

    Raises:
        DataError: there are more than a model tells apart, or text beside numbers.
    """
    try:
        return Categories.of({value if isinstance(value, str) else str(value) for value in found})
    except DataError as error:
        raise DataError(f"the target: {error}") from None


def checked_missing(missing: Any) -> float | None:
    """The sentinel of missing values that a user gives; NaN, as XGBoost has it by default, is none.

    Raises:
        ConfigurationError: it is no number.
    """
    value = missing.item() if isinstance(missing, np.generic) else missing
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if not is_number(value):
        raise ConfigurationError(f"missing={shown(missing)}: give the number that stands for a missing value, or None")
    return float(value)


def is_identifier_name(name: str) -> bool:
    """Whether a column is called what identifiers of rows usually are, or has the name of a written index."""
    return name in INDEX_NAMES or bool(_ID.fullmatch(name) or _CAMEL_ID.fullmatch(name))


def identifies(column: Any) -> bool:
    """Whether an Arrow array could identify rows: whole numbers or text, all there, and each value once."""
    from pyarrow import compute, types

    if not (types.is_integer(column.type) or is_text(column.type)) or column.null_count or len(column) < 2:
        return False
    return bool(compute.count_distinct(column).as_py() == len(column))


def arrow_of(values: Any) -> Any:
    """Values that NumPy and pandas hold, as one Arrow array.

    Raises:
        DataError: they are of several kinds, or of one that Arrow does not have.
    """
    import pyarrow as pa

    try:
        array = pa.array(values, from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError) as error:
        raise DataError(
            f"values are neither all numbers nor all text ({error}); write them as one of the two"
        ) from None
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def text_of(column: Any) -> Any:
    """An Arrow array of text or of a dictionary of text, as text."""
    import pyarrow as pa

    plain = column.dictionary_decode() if isinstance(column, pa.DictionaryArray) else column
    return plain.cast(pa.string())


def holds_text(kind: Any) -> bool:
    """Whether an Arrow type is text, or a dictionary of text."""
    from pyarrow import types

    return is_text(kind.value_type if types.is_dictionary(kind) else kind)


def kind_of_text(column: Any) -> str | None:
    """`DATE` or `ZONED` where all values of an Arrow array of text are ISO dates, else None."""
    import pyarrow as pa
    from pyarrow import compute

    if column.null_count == len(column) or not compute.all(compute.match_substring_regex(column, _DATE)).as_py():
        return None
    for kind, zone in ((DATE, None), (ZONED, "UTC")):
        try:
            column.cast(pa.timestamp("us", zone))
        except pa.ArrowException:
            continue
        return kind
    return None


def column_numbers(column: Any) -> NDArray[Any]:
    """Numbers of an Arrow array: of dates, and of text with ISO dates, days since 1970-01-01; NaN where missing."""
    import pyarrow as pa
    from pyarrow import types

    if column.type in (pa.float64(), pa.float32()) and not column.null_count:
        return column.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    if is_text(column.type):
        zone = "UTC" if kind_of_text(column) == ZONED else None
        try:
            column = column.cast(pa.timestamp("us", zone))
        except pa.ArrowException as error:
            raise DataError(
                f"a column of text holds no ISO dates ({error}); name it in categorical=[...], leave it out with "
                "drop=[...], or write ISO dates"
            ) from None
    dates = types.is_date(column.type) or types.is_timestamp(column.type)
    if dates:
        column = column.cast(pa.timestamp("us", getattr(column.type, "tz", None)), safe=False).cast(pa.int64())
    # Through float64, so that the same number gives the same float32 whatever it was stored as; rounded, from 2**53 on.
    numbers: NDArray[Any] = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers / _DAY if dates else numbers


def with_days(frame: Any, dates: Collection[str]) -> Any:
    """A DataFrame whose columns of dates are days since 1970-01-01; numbers there are taken for such days.

    Args:
        frame: rows as a user has them.
        dates: names of the columns; of columns without names, their places as text.

    Raises:
        DataError: a value is no date, naming the row.
    """
    found = frame.copy(deep=False)
    for at, name in enumerate(frame.columns):
        if str(name) not in dates or frame.iloc[:, at].dtype.kind in "iuf":
            continue
        column = frame.iloc[:, at]
        column = column.where(column != "", None) if column.dtype.kind not in "M" else column
        try:
            found.isetitem(at, column_numbers(arrow_of(column)))
        except DataError:
            place = _first_no_date(column)
            raise DataError(
                f"row {frame.index[place] + 1}: column {name!r} holds {column.tolist()[place]!r}, and the model was "
                "trained on dates there; write ISO dates, such as 2024-01-31"
            ) from None
    return found


def _first_no_date(column: Any) -> int:
    for at, value in enumerate(column.tolist()):
        try:
            column_numbers(arrow_of([value]))
        except DataError:
            return at
    return 0


def is_number_type(kind: Any) -> bool:
    """Whether an Arrow type holds numbers, or true and false."""
    from pyarrow import types

    of = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    return any(is_one(kind) for is_one in of)


def is_date(kind: Any) -> bool:
    """Whether an Arrow type holds dates, with a time of day or without."""
    from pyarrow import types

    return bool(types.is_date(kind) or types.is_timestamp(kind))


def first_text(values: Sequence[Any]) -> int:
    """Return the place of the first value that is neither a number nor an ISO date; else of the first text.

    Args:
        values: of a column, with text among them.
    """
    texts = [at for at, value in enumerate(values) if isinstance(value, str) and not _reads_as_number(value)]
    odd = (at for at in texts if not re.match(_DATE, values[at]))
    some = next((at for at, value in enumerate(values) if isinstance(value, str)), 0)
    return next(odd, texts[0] if texts else some)


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_OTHER_DATE = re.compile(r"'\d{1,4}[./]\d{1,2}[./]\d{2,4}\b")
_OTHER_NUMBER = re.compile(r"'[-+]?[$€£]?\s?(\d{1,3}([,' ]\d{3})+([.,]\d+)?|\d+,\d+|\d+(\.\d+)?\s?[%$€£])\s?'")
"""Examples of text, in quotes, that look like a date or a number in a form that is not read."""


def text_problem(text: Mapping[str | int, str], target_known: bool = True) -> DataError:
    """The error about all columns of text that nobody says what to do with.

    Args:
        text: a value of each column, by its name or its place, with where it stands.
        target_known: False where the target may be among them.
    """
    names = list(text)[:_NAMED]
    several = len(text) > 1
    examples = some_of([f"{name!r} ({example})" for name, example in text.items()], _NAMED)
    target = "" if target_known else "; the target may hold text"
    they, them = ("they", "them") if several else ("it", "it")
    return DataError(
        f"column{'s' if several else ''} {examples} hold{'' if several else 's'} text{target}: if {they} should hold "
        f"numbers, correct such cells; else name {them} in categorical={names!r}, or leave {them} out with "
        f"drop={names!r}{_form_hint(text)}"
    )


def _form_hint(text: Mapping[str | int, str]) -> str:
    """How dates and numbers have to be written, where an example looks like one in another form; else empty."""
    hints = []
    if any(_OTHER_DATE.match(example) for example in text.values()):
        hints.append("dates are read as 2024-01-31")
    if any(_OTHER_NUMBER.match(example) for example in text.values()):
        hints.append("numbers are read as 1234.5, without separators or units")
    return "".join(f"; {hint}" for hint in hints)


def gathered_roles(
    problems: Problems,
    target: str | int | None,
    given: Mapping[str, Any],
    columns: Sequence[str] | None,
    width: int,
    drop: Sequence[str | int],
) -> Roles | None:
    """Roles of the columns as `Roles.of` has them; None where the target is not known. `problems` keeps errors."""
    roles = None
    with problems.gathered():
        roles = Roles.of(target, given, columns, width)
    for at in range(len(drop) if roles else 0):
        with problems.gathered():
            dropped = roles.dropped if roles else ()
            roles = Roles.of(target, given, columns, width, [*dropped, drop[at]])
    return roles


class Problems:
    """Problems of one source, raised together."""

    def __init__(self) -> None:
        self._found: list[ConfigurationError | DataError] = []

    @contextmanager
    def gathered(self) -> Iterator[None]:
        """Keeps a problem that the block raises."""
        try:
            yield
        except (ConfigurationError, DataError) as error:
            self._found.append(error)

    def check(self) -> None:
        """Raises all problems in one error, if there are some.

        Raises:
            ConfigurationError, DataError: of the first problem's kind; each problem is a line.
        """
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise type(self._found[0])("\n".join(map(str, self._found)))
