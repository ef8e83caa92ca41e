"""Columns of categories as XGBoost takes them, and what it does not train on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainers.channels import Coding
from trainers.errors import ConfigurationError, DataError


def check_categories(
    channel: str, coding: Coding, hyperparameters: Mapping[str, Any], names: Sequence[str] | None = None
) -> None:
    """Refuses categories that XGBoost has no name for, and methods that do not train on any.

    Args:
        channel: its name.
        coding: of its features.
        hyperparameters: XGBoost's own.
        names: of its features, if they have some.

    Raises:
        ConfigurationError, DataError: naming the channel and the remedy.
    """
    if not coding:
        return
    check_method(channel, hyperparameters)
    for at, categories in coding.items():
        if not categories.values:
            column = repr(names[at]) if names else str(at)
            raise DataError(
                f"channel {channel!r}: column {column} is categorical and has no category, as every value is missing; "
                "leave the column out"
            )
        if not (categories.of_text or categories.of_whole_numbers):
            value = next(one for one in categories.values if not isinstance(one, str))
            raise DataError(
                f"channel {channel!r} has the category {value!r}, and XGBoost takes text and whole numbers; make it "
                "one of these (Series.astype('int64').astype('category'), say)"
            )
    whole = [categories for categories in coding.values() if not categories.of_text]
    text = [value for categories in coding.values() if categories.of_text for value in categories.values]
    if whole and (foreign := next((value for value in text if not _plain(value)), None)) is not None:
        raise DataError(
            f"channel {channel!r} has the category {foreign!r} in one column and numbers as categories in another; "
            "XGBoost's names of categories go wrong with that; write these numbers as text"
        )


def check_method(channel: str, hyperparameters: Mapping[str, Any]) -> None:
    """Refuses methods that do not train on categories.

    Raises:
        ConfigurationError: naming the method, and the channel that has some.
    """
    for name in ("tree_method", "booster"):
        if (value := hyperparameters.get(name)) in ("exact", "gblinear"):
            raise ConfigurationError(
                f"channel {channel!r} has categories, which XGBoost does not train on with {name} {value!r}; leave "
                "that out, or encode them as numbers (pandas.get_dummies, say)"
            )


def as_xgboost_takes(features: Any) -> Any:
    """Features of a table for a matrix of XGBoost, which stores the names of categories in the model.

    XGBoost 3.2 counts characters of a DataFrame's text where it has to count bytes, so that a model knows other names
    than it was trained on. It does not with Arrow, so what is not ASCII goes that way.
    """
    if not hasattr(features, "dtypes"):
        return features
    texts = [dtype.categories for dtype in features.dtypes if hasattr(dtype, "categories")]
    if all(_plain(value) for index in texts for value in index.tolist()):
        return features
    import pyarrow as pa

    return pa.table({str(name): _arrow(features[name]) for name in features.columns})


def has_categories(features: Any) -> bool:
    """Whether some columns of a table's features hold categories."""
    return any(hasattr(dtype, "categories") for dtype in getattr(features, "dtypes", ()))


def as_model_knows(model: Any, frame: Any) -> Any:
    """A DataFrame's features for a matrix that a model predicts; what the model does not know is missing.

    Args:
        model: an `xgboost.Booster`, trained here or by hand.
        frame: has the model's features among its columns.

    Raises:
        DataError: a column holds numbers alone, and the model knows text.
    """
    import pandas as pd

    known = dict(model.get_categories(export_to_arrow=True).to_arrow())
    coded = {}
    for name, values in ((name, of.to_pylist()) for name, of in known.items() if of is not None):
        coded[name] = pd.Categorical.from_codes(codes_known(name, values, frame[name]), values)
    return as_xgboost_takes(frame.assign(**coded)[model.feature_names])


def codes_known(name: str, values: Sequence[Any], column: Any) -> Any:
    """Places of a column's values among the categories that a model knows, as an array; -1 where it knows none.

    Args:
        name: the column's.
        values: the categories, by code: text, or whole numbers.
        column: a pandas Series of values, text that numbers are written as among them, or of categories.

    Raises:
        DataError: the column holds numbers alone, and the model knows text.
    """
    import pandas as pd

    column = column.astype(object)
    codes = pd.Index(values, dtype=object).get_indexer(column)
    text = column.map(lambda value: isinstance(value, str)).to_numpy(bool)
    if all(isinstance(value, str) for value in values):
        if column.notna().any() and not text.any():
            raise DataError(
                f"column {name!r} holds numbers, such as {column.dropna().iloc[0]!r}, and the model was trained on "
                f"text there, such as {values[0]!r}; write them as that text"
            )
        return codes
    if text.any():  # Cells of CSV files: as they are first, as a number of 18 digits is no float.
        codes[text] = pd.Index([str(value) for value in values], dtype=object).get_indexer(column[text])
        rest = text & (codes < 0)
        codes[rest] = pd.Index(values, dtype=object).get_indexer(pd.to_numeric(column[rest], errors="coerce"))
    return codes


def _plain(value: Any) -> bool:
    return not isinstance(value, str) or (value.isascii() and "\0" not in value)


def _arrow(column: Any) -> Any:
    import pyarrow as pa

    if not hasattr(column.dtype, "categories"):
        return pa.array(column.to_numpy(), from_pandas=False)
    codes = column.cat.codes.to_numpy()
    values = pa.array(column.cat.categories.tolist(), pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype("int32"), mask=codes < 0), values)
