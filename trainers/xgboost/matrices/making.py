"""XGBoost's matrices of a worker's rows, in memory or on disk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainers.channels import Table
from trainers.xgboost.matrices.spooled import Spooled, as_arguments

Kind = tuple[str, int]
"""How rows are held: a method, and the bins that it takes."""
PLAIN: Kind = ("plain", 0)
KEPT = 2
"""Values of `max_bin`, or ways to hold rows, that a gang keeps matrices for: those that trials used last."""


def kind_of(hyperparameters: Mapping[str, Any]) -> Kind:
    """Which matrices a configuration needs."""
    if hyperparameters.get("tree_method") in ("exact", "approx") or hyperparameters.get("booster") == "gblinear":
        return PLAIN
    return "quantile", int(hyperparameters.get("max_bin") or 256)


def matrix(kind: Kind, rows: Table | Spooled, threads: int, reference: Any = None) -> Any:
    """Rows as XGBoost holds them; those of `Spooled` stay on disk, and XGBoost's pages beside them.

    Args:
        kind: how rows are held.
        rows: a worker's.
        threads: that make it.
        reference: a matrix whose bins these rows get; None: XGBoost finds bins of its own.
    """
    import xgboost

    options: dict[str, Any] = {"nthread": threads, "enable_categorical": True}
    if kind != PLAIN:
        options |= {"max_bin": kind[1], "ref": reference}
    if isinstance(rows, Spooled):
        return rows.matrix(xgboost.DMatrix if kind == PLAIN else xgboost.ExtMemQuantileDMatrix, options)
    return (xgboost.DMatrix if kind == PLAIN else xgboost.QuantileDMatrix)(**options, **as_arguments(rows))
