"""Categories of columns: each has one code, whichever file or worker its rows are on."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainers.channels.rows.roles import Roles, place_of
from trainers.errors import ConfigurationError, DataError

MOST = 2**24
"""Categories of a column: float32, which XGBoost holds codes in, tells no more whole numbers apart."""

SHOWN = 20
"""Categories of a column that a description names."""

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Categories:
    """Categories of one column, by code.

    Args:
        values: each its own: text, or whole numbers; what else a DataFrame may have stays as it is.
        dtype: of a pandas Index that holds them.
        ordered: they have an order, as pandas has it; XGBoost learns from none.
    """

    values: tuple[Any, ...]
    dtype: str = "object"
    ordered: bool = False

    @classmethod
    def of(cls, found: Iterable[str | int], *, typed: bool = True) -> Categories:
        """What was found, sorted: text by code point, numbers by value.

        Args:
            found: in any order.
            typed: text is meant as such; of CSV cells and directories it is numbers where all of it is whole numbers,
                written as Python writes them.

        Raises:
            DataError: there are text and numbers, or too much.
        """
        values = set(found)
        if len(values) > MOST:
            raise DataError(f"it has more than {MOST} categories; group the rare ones")
        numbers = [value for value in values if isinstance(value, int)]
        if numbers and len(numbers) < len(values):
            text = next(value for value in values if isinstance(value, str))
            raise DataError(f"it holds text, such as {text!r}, and numbers, such as {numbers[0]}; give one of the two")
        if not typed and all(_WHOLE.fullmatch(str(value)) for value in values):
            values = set(map(int, values))
        whole = isinstance(next(iter(values), None), int)
        return cls(values=tuple(sorted(values)), dtype="int64" if whole else "object")

    @classmethod
    def of_dtype(cls, dtype: Any) -> Categories:
        """Those of a `category` dtype of pandas, in its order."""
        index = dtype.categories
        return cls(values=tuple(index.tolist()), dtype=str(index.dtype), ordered=bool(dtype.ordered))

    @property
    def of_text(self) -> bool:
        """Whether all are text."""
        return all(isinstance(value, str) for value in self.values)

    @property
    def of_whole_numbers(self) -> bool:
        """Whether all are whole numbers."""
        return all(isinstance(value, int) and not isinstance(value, bool) for value in self.values)

    def digest(self) -> str:
        """A short digest, the same for the same codes."""
        return hashlib.blake2b(repr(self.values).encode(), digest_size=12).hexdigest()

    def pandas_dtype(self) -> Any:
        """The `category` dtype that stands for them in a DataFrame."""
        import pandas as pd

        return pd.CategoricalDtype(pd.Index(list(self.values), dtype=self.dtype), ordered=self.ordered)

    def codes(self, column: Any, unseen: Callable[[int], DataError]) -> NDArray[np.float32]:
        """The code of each value of an Arrow array; NaN where it is missing.

        Args:
            column: of text or numbers, or a dictionary of them.
            unseen: makes the error about a place whose value is none of the categories.
        """
        import pyarrow as pa

        plain = column.dictionary if isinstance(column, pa.DictionaryArray) else column
        codes = self._codes(plain)
        if plain is not column:
            if plain.null_count:
                column = column.dictionary_decode()
                codes = self._codes(column)
            else:
                codes = codes.take(column.indices)
        found: NDArray[np.float32] = codes.cast(pa.float32()).to_numpy(zero_copy_only=False)
        wrong = np.isnan(found) & ~missing(column)
        if wrong.any():
            raise unseen(int(wrong.argmax()))
        return found

    def _codes(self, column: Any) -> Any:
        """Places among the values, as an Arrow array; null where there is none."""
        import pyarrow as pa
        from pyarrow import compute, types

        if is_text(column.type):
            known = pa.array([str(value) for value in self.values], pa.string())
            return compute.index_in(column.cast(pa.string()), value_set=known)
        if not self.of_whole_numbers:
            return pa.nulls(len(column), pa.int32())
        kind = pa.float64() if types.is_floating(column.type) else pa.int64()
        return compute.index_in(column.cast(kind), value_set=pa.array(self.values, pa.int64()).cast(kind))


Coding = Mapping[int, Categories]
"""Categories by the place of their column among the features."""


def named_columns(what: str, named: str | int | Sequence[str | int] | None) -> tuple[str | int, ...]:
    """Columns that a user names; None is none of them.

    Args:
        what: the argument, for a message.
        named: one column or several, by name or position.

    Raises:
        ConfigurationError: it is no list of columns.
    """
    if named is None or isinstance(named, str | int | np.integer):
        return () if named is None else (named,)
    if not isinstance(named, list | tuple):
        raise ConfigurationError(f"{what}={named!r}: give a list of columns, by name or position")
    return tuple(named)


def coded_features(named: Sequence[str | int], roles: Roles, columns: Sequence[str] | None, width: int) -> list[int]:
    """Which features a user names as categorical, by their places among the features.

    Args:
        named: columns, by name or position.
        roles: of all columns.
        columns: their names, if they have some.
        width: how many there are.

    Raises:
        ConfigurationError: there is no such column, or it is no feature.
    """
    places = [place_of("categorical", one, columns, width) for one in named]
    features = roles.features(width)
    for place, one in zip(places, named, strict=True):
        if place not in features:
            role = next((role for role, of in roles.said if place in of), "the target")
            raise ConfigurationError(
                f"categorical={one!r}: that column is {role}, and features alone have categories; leave it out there"
            )
    return sorted({features.index(place) for place in places})


def check_some(coding: Coding, feature: Callable[[int], str]) -> None:
    """Refuses columns of categories that have none.

    Args:
        coding: of some features.
        feature: a feature's name for a message, by its place.

    Raises:
        DataError: naming the first.
    """
    for at, categories in coding.items():
        if not categories.values:
            raise DataError(
                f"{feature(at)} is categorical and has no category, as every value is missing; leave the column out"
            )


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is text."""
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def may_be_categories(kind: Any) -> bool:
    """Whether values of an Arrow type may be categories."""
    from pyarrow import types

    kind = kind.value_type if types.is_dictionary(kind) else kind
    return is_text(kind) or types.is_null(kind) or types.is_integer(kind) or types.is_floating(kind)


def missing(column: Any) -> NDArray[np.bool_]:
    """Which values of an Arrow array are missing, NaN too."""
    found: NDArray[np.bool_] = column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    return found


def distinct(column: Any) -> set[str | int]:
    """The values of an Arrow array, those of its dictionary that no row has, too; without what is missing.

    Raises:
        DataError: one is a number that is not whole.
    """
    import pyarrow as pa

    plain = column.dictionary if isinstance(column, pa.DictionaryArray) else column.unique()
    values = {value for value in plain.to_pylist() if value is not None and value == value}  # NaN is not itself.
    for value in values:
        if not isinstance(value, str) and (not float(value).is_integer() or abs(value) >= 2**63):
            raise DataError(f"it holds {value}, and categories are text or whole numbers; write it as such")
    return {value if isinstance(value, str) else int(value) for value in values}


def integer_codes(codes: NDArray[np.float32]) -> NDArray[np.int32]:
    """Codes as pandas has them: -1 where a value is missing."""
    return np.where(np.isnan(codes), np.float32(-1), codes).astype(np.int32)


def framed(features: NDArray[np.float32], names: Sequence[str] | None, coding: Coding) -> Any:
    """Features whose categories are codes, NaN where missing, as a DataFrame that has categories.

    Args:
        features: one row an example.
        names: of the columns; None are numbers, as text.
        coding: of some of them.
    """
    import pandas as pd

    columns: dict[str, Any] = {}
    for at in range(features.shape[1]):
        name, column = names[at] if names else str(at), features[:, at]
        if at in coding:
            columns[name] = pd.Categorical.from_codes(integer_codes(column), dtype=coding[at].pandas_dtype())
        else:
            columns[name] = column
    return pd.DataFrame(columns, copy=False)


def unframed(frame: Any) -> tuple[NDArray[np.float32], dict[int, Categories]]:
    """Features of a DataFrame that has categories as numbers, codes among them, and the categories: see `framed`."""
    features, coding = np.empty(frame.shape, np.float32), {}
    for at, dtype in enumerate(frame.dtypes):
        if hasattr(dtype, "categories"):
            coding[at] = Categories.of_dtype(dtype)
            codes = frame.iloc[:, at].cat.codes.to_numpy()
            features[:, at] = np.where(codes < 0, np.float32(np.nan), codes.astype(np.float32))
        else:
            features[:, at] = frame.iloc[:, at]
    return features, coding


def described(coding: Coding, names: Sequence[str] | None) -> dict[str, Any]:
    """How many categories columns have and the first of them, as JSON takes it."""
    return {
        names[at] if names else str(at): {
            "count": len(categories.values),
            "first": [value if isinstance(value, str | int) else str(value) for value in categories.values[:SHOWN]],
        }
        for at, categories in coding.items()
    }


def unseen(column: str, value: Any, row: int) -> DataError:
    """The error about a category of no row that is trained on."""
    return DataError(
        f"row {row}: column {column!r} holds {value!r}, a category of no row that is trained on; make the value "
        "missing there, leave the row out, or add rows with it to 'train'"
    )
