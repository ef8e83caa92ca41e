"""Matrices that hold nothing but cuts, from which XGBoost takes the bins of other matrices."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from trainers.channels import Coding, framed
from trainers.xgboost.matrices.categories import as_xgboost_takes
from trainers.xgboost.matrices.cuts import Cuts


def reference(
    cuts: Cuts, max_bin: int, threads: int, *, names: Sequence[str] | None, coding: Coding, sparse: bool
) -> Any:
    """Return an `xgboost.QuantileDMatrix` whose bins begin at these cuts.

    XGBoost gives each value of a column a bin of its own where there are at most `max_bin`, so the matrix has a row for
    each cut.

    Args:
        cuts: of the columns.
        max_bin: of the matrices that will have these bins.
        threads: that make it.
        names: of the columns, if they have some.
        coding: of the columns that have categories: each category gets a bin.
        sparse: whether those matrices are of sparse rows.
    """
    columns, values = cuts.columns, cuts.values
    for at in coding:
        mine, greatest = columns == at, cuts.of_column(at).max(initial=-1)
        codes = np.arange(greatest + 1, dtype=np.float32)
        columns = np.concatenate([columns[~mine], np.full(len(codes), at)])
        values = np.concatenate([values[~mine], codes])
    order = np.argsort(columns, kind="stable")
    columns, values = columns[order], values[order]
    rows = np.arange(len(columns)) - np.searchsorted(columns, columns)
    shape = (int(rows.max(initial=0)) + 1, cuts.width)
    if sparse:
        from scipy.sparse import csr_matrix

        features: Any = csr_matrix((values, (rows, columns)), shape=shape)
    else:
        features = np.full(shape, np.nan, np.float32)
        features[rows, columns] = values
    return made_apart(
        data=as_xgboost_takes(framed(features, names, coding) if coding else features),
        feature_names=None if names is None else list(names),
        max_bin=max_bin,
        nthread=threads,
    )


def made_apart(**arguments: Any) -> Any:
    """Return an `xgboost.QuantileDMatrix` that other workers take no part in.

    Only the thread that joined XGBoost's collective is of it, so another thread makes the matrix.
    """
    import xgboost

    with ThreadPoolExecutor(1, "bins") as apart:
        return apart.submit(xgboost.QuantileDMatrix, enable_categorical=True, **arguments).result()
