"""Scorers: a trained model with what it takes to predict rows in another process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from hpo.text import count
from trainers.channels import with_days
from trainers.checking import some_of
from trainers.errors import ConfigurationError, DataError
from trainers.process import load, name_of
from trainers.trainer import Trainer
from trainers.xgboost import codes_known, preparation_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class Scorer(Protocol):
    """A model that predicts rows; it is picklable."""

    def checked(self, rows: pd.DataFrame) -> Any:
        """Rows as the model takes them; those of several requests may stand one behind the other.

        Args:
            rows: columns by name, or by numbers where they have no names; their index is told in errors, from 1.

        Raises:
            DataError: columns are missing, too many or there twice, or a value is no number.
        """

    @property
    def classes(self) -> tuple[str, ...]:
        """Text labels by the numbers that the model was trained on; empty where labels were numbers."""

    def predict(self, rows: Any) -> NDArray[Any]:
        """A prediction a row, of shape (rows,) or (rows, outputs).

        Args:
            rows: as `checked` gave them.
        """

    def named(self, found: NDArray[Any]) -> pd.DataFrame:
        """Predictions as a table.

        Args:
            found: as `predict` gave them.

        Returns:
            The column `prediction`, or `prediction_0` and so on for several outputs; of a model with text labels,
            `prediction` with the label, and `probability_LABEL` for each label where the model gives probabilities.
        """


PREDICTION, PROBABILITY = "prediction", "probability_"
"""Names of columns of predictions."""


def scorer_of(
    estimator: Trainer,
    model_fn: Callable[[Any], Any] | str | None = None,
    trained_on: Mapping[str, Any] | None = None,
) -> Scorer:
    """The scorer of a trainer's model.

    Args:
        estimator: has trained a model, as `HyperparameterTuner.best_estimator` gives it.
        model_fn: for PyTorch and programs: makes something that is called with a float32 tensor of shape (rows,
            features), an `nn.Module` say, of what `estimator.model()` gives; or its name, "module:name", which is
            imported where rows are predicted.
        trained_on: the channel "train" of its job's record, as `Channel.describe` has it, which says how rows were
            prepared; XGBoost's models say it themselves.

    Raises:
        ConfigurationError: there is no model, or `model_fn` is missing, or nothing for this trainer.
    """
    from trainers import ParameterServerTrainer, ScriptTrainer, TorchTrainer, XGBoostTrainer

    if isinstance(estimator, XGBoostTrainer):
        if model_fn is not None:
            raise ConfigurationError(
                "model_fn makes a model of a checkpoint, and XGBoost's is a model already; leave it out"
            )
        return BoosterScorer(raw=bytes(estimator.model().save_raw("ubj")))
    if not isinstance(estimator, TorchTrainer | ParameterServerTrainer | ScriptTrainer):
        raise ConfigurationError(
            f"{type(estimator).__name__} has a model that nothing here predicts with; call model() and predict yourself"
        )
    if model_fn is None:
        raise ConfigurationError(
            f"model_fn is missing: {type(estimator).__name__} keeps what your program saved, and no model; give a "
            "function that makes one of that, as 'module:name' or itself"
        )
    if not callable(model_fn) and not isinstance(model_fn, str):
        raise ConfigurationError(f"model_fn is {model_fn!r}; give a function, or 'module:name'")
    prepared = {key: value for key, value in (trained_on or {}).items() if key in ("classes", "dates", "missing")}
    return TensorScorer(state=estimator.model(), model_fn=model_fn, preparation=prepared)


@dataclass(frozen=True, kw_only=True)
class BoosterScorer:
    """XGBoost's model; rows may have categories, which it knows by their names.

    Args:
        raw: the model, in UBJSON.
    """

    raw: bytes

    def __getstate__(self) -> dict[str, Any]:
        return {"raw": self.raw}

    @cached_property
    def _booster(self) -> Any:
        import xgboost

        return xgboost.Booster(model_file=bytearray(self.raw))

    @cached_property
    def _categories(self) -> dict[str, list[Any]]:
        known = dict(self._booster.get_categories(export_to_arrow=True).to_arrow())
        return {name: values.to_pylist() for name, values in known.items() if values is not None}

    @cached_property
    def _preparation(self) -> dict[str, Any]:
        return preparation_of(self._booster)

    @property
    def classes(self) -> tuple[str, ...]:
        """See `Scorer`."""
        return tuple(self._preparation.get("classes", ()))

    @property
    def width(self) -> int:
        """How many columns the model has.

        Raises:
            ConfigurationError: some have categories, so that rows need names.
        """
        if self._categories:
            names = some_of(sorted(map(repr, self._categories)))
            raise ConfigurationError(
                f"the model has categories in {names}, and libsvm files have numbers alone; give .csv or .parquet"
            )
        return int(self._booster.num_features())

    def checked(self, rows: pd.DataFrame) -> pd.DataFrame:
        """See `Scorer`."""
        names = self._booster.feature_names
        chosen = _all_of(rows, self._booster.num_features()) if names is None else _named(rows, names)
        _check_once_each(chosen)
        chosen = with_days(chosen, self._preparation.get("dates", ()))
        sentinel = self._preparation.get("missing")
        found: pd.DataFrame = chosen.copy(deep=False)
        for name, values in self._categories.items():
            codes = codes_known(name, values, chosen[name])
            found[name] = pd.Categorical.from_codes(codes, pd.Index(values, dtype=object))
        for name in (each for each in chosen.columns if each not in self._categories):
            # Names may be numbers, where a model has none.
            found[name] = numbers = _without(sentinel, _numbers(chosen, name))
            if (wrong := np.isinf(numbers)).any():
                raise _problem(chosen, name, wrong, "XGBoost takes finite numbers, up to 3.4e38; leave it empty")
        return found

    def predict(self, rows: pd.DataFrame | csr_matrix) -> NDArray[Any]:
        """See `Scorer`; of a sparse matrix, which has all columns in their order, what is not there is missing."""
        import xgboost

        from trainers import XGBoostTrainer

        if not isinstance(rows, pd.DataFrame):
            matrix = xgboost.DMatrix(rows, feature_names=self._booster.feature_names)
        elif self._booster.feature_names is None:
            matrix = xgboost.DMatrix(rows.to_numpy(np.float32))
        else:
            matrix = XGBoostTrainer.matrix(self._booster, rows)
        predicted: NDArray[Any] = self._booster.predict(matrix)
        return predicted

    def named(self, found: NDArray[Any]) -> pd.DataFrame:
        """See `Scorer`."""
        if not self.classes:
            return _numbered(found)
        objective = json.loads(self._booster.save_config())["learner"]["objective"]["name"]
        if found.ndim == 2:
            return _labelled(found.argmax(axis=1), self.classes, found)
        if objective in ("binary:logistic", "reg:logistic"):
            return _labelled(found > 0.5, self.classes, np.column_stack([1 - found, found]))
        return _labelled(found > 0 if objective == "binary:logitraw" else found, self.classes)


@dataclass(frozen=True, kw_only=True)
class TensorScorer:
    """What a user's function makes of a checkpoint: it is called with float32 tensors of shape (rows, features).

    Args:
        state: what `Trainer.model` gives: a checkpoint's state, or the path of a program's folder.
        model_fn: the function, or its name.
        preparation: classes, dates and missing, as `Channel.describe` has them.
    """

    state: Any
    model_fn: Callable[[Any], Any] | str
    preparation: Mapping[str, Any] = field(default_factory=dict)
    _made: list[Any] = field(default_factory=list, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return {"state": self.state, "model_fn": self.model_fn, "preparation": self.preparation, "_made": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    @property
    def _model(self) -> Any:
        if not self._made:
            make = load(self.model_fn, "model_fn", "function") if isinstance(self.model_fn, str) else self.model_fn
            model = make(self.state)
            if not callable(model):
                named = self.model_fn if isinstance(self.model_fn, str) else name_of(self.model_fn)
                raise ConfigurationError(f"model_fn {named!r} gave a {type(model).__name__}; give what can be called")
            self._made.append(model.eval() if hasattr(model, "eval") else model)
        return self._made[0]

    def checked(self, rows: pd.DataFrame) -> pd.DataFrame:
        """See `Scorer`; how many columns there have to be, only the model knows."""
        _check_once_each(rows)
        rows, sentinel = with_days(rows, self.preparation.get("dates", ())), self.preparation.get("missing")
        return pd.DataFrame({name: _without(sentinel, _numbers(rows, name)) for name in rows.columns})

    @property
    def classes(self) -> tuple[str, ...]:
        """See `Scorer`."""
        return tuple(self.preparation.get("classes", ()))

    def named(self, found: NDArray[Any]) -> pd.DataFrame:
        """See `Scorer`; a label is the class with the greatest output, where there is one output for each class."""
        if self.classes and found.ndim == 2 and found.shape[1] == len(self.classes):
            return _labelled(found.argmax(axis=1), self.classes)
        return _numbered(found)

    def predict(self, rows: pd.DataFrame) -> NDArray[Any]:
        """See `Scorer`."""
        import torch

        values = rows.to_numpy(np.float32, copy=True)  # what pandas shares is not writable, which PyTorch warns of
        with torch.inference_mode():
            found = self._model(torch.from_numpy(values))
        predicted: NDArray[Any] = found.detach().cpu().numpy() if isinstance(found, torch.Tensor) else np.asarray(found)
        if len(predicted) != len(rows):
            raise DataError(f"the model gave {len(predicted)} predictions of {len(rows)} rows; give one a row")
        return predicted


def _numbered(found: NDArray[Any]) -> pd.DataFrame:
    if found.ndim == 1:
        return pd.DataFrame({PREDICTION: found})
    flat = found.reshape(len(found), -1)
    return pd.DataFrame({f"{PREDICTION}_{at}": flat[:, at] for at in range(flat.shape[1])})


def _labelled(numbers: NDArray[Any], classes: Sequence[str], probabilities: NDArray[Any] | None = None) -> pd.DataFrame:
    """Labels by their numbers, and probabilities of each class where there are some."""
    table = pd.DataFrame({PREDICTION: np.asarray(classes, dtype=object)[numbers.astype(np.intp)]}, dtype="str")
    for at, label in enumerate(classes if probabilities is not None else ()):
        table[f"{PROBABILITY}{label}"] = probabilities[:, at] if probabilities is not None else None
    return table


def _without(sentinel: float | None, numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    """Numbers with NaN in the place of the sentinel of missing values."""
    if sentinel is None:
        return numbers
    return np.where(numbers == np.float32(sentinel), np.float32(np.nan), numbers)


def _named(rows: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """The columns of a model, by their names; or by their places, where rows have none."""
    if all(isinstance(name, int) for name in rows.columns):
        return _all_of(rows, len(names)).set_axis(list(names), axis=1)
    if missing := [name for name in names if name not in rows.columns]:
        raise DataError(f"rows lack {some_of(list(map(repr, missing)))}, which the model was trained on")
    return rows[list(names)]


def _all_of(rows: pd.DataFrame, width: int) -> pd.DataFrame:
    if rows.shape[1] != width:
        raise DataError(
            f"rows have {count(rows.shape[1], 'column')}, and the model was trained on {width}; leave out the target"
        )
    return rows


def _check_once_each(rows: pd.DataFrame) -> None:
    if (twice := rows.columns.duplicated()).any():
        raise DataError(f"rows have the column {rows.columns[twice][0]!r} twice; leave one out")


def _numbers(rows: pd.DataFrame, name: Any) -> NDArray[np.float32]:
    """A column as numbers; what is missing is NaN."""
    column = rows[name]
    if isinstance(column.dtype, pd.StringDtype):
        with suppress(pa.ArrowException):  # Ten times as fast as pandas, which says where it goes wrong.
            return _as_float32(pa.array(column, from_pandas=True).cast(pa.float64()).to_numpy(zero_copy_only=False))
    numbers = pd.to_numeric(column, errors="coerce")
    if isinstance(column.dtype, pd.StringDtype):
        numbers = numbers.fillna(column.str.lower().map(_TRUTH))
    wrong = numbers.isna() & column.notna()
    if column.dtype.kind not in "fiub" and (wrong := wrong & (column.astype(object) != "")).any():
        raise _problem(rows, name, wrong.to_numpy(bool), "the model takes numbers")
    return _as_float32(numbers)


_TRUTH = {"true": 1.0, "false": 0.0}
"""How tables write what is true."""


def _as_float32(numbers: Any) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # What is too large is infinite.
        return np.asarray(numbers, np.float32)


def _problem(rows: pd.DataFrame, name: Any, wrong: NDArray[np.bool_], why: str) -> DataError:
    """What is wrong with the first of some values of a column."""
    at = int(wrong.argmax())
    [value] = rows[name].iloc[[at]].tolist()
    return DataError(f"row {rows.index[at] + 1}: column {name!r} holds {value!r}, and {why}")
