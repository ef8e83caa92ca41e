"""Standard error of a score, from the rows that it was measured on."""

from __future__ import annotations

import math
from typing import Any

from trainers.channels import LabelCounts

PROPORTIONS = frozenset({"accuracy", "error", "merror"})
"""Metrics that are the share of rows that were right, or wrong; XGBoost's "error@0.4" is one too."""


def standard_error(metric: str, value: float, labels: Any) -> float | None:
    """The standard error of a score, from the rows alone; None where no formula for the metric is known here.

    Args:
        metric: what was measured, without its channel: "auc", or one of `PROPORTIONS`.
        value: the score.
        labels: of the rows that it was measured on. An AUC's have to be 0 and 1; of more classes none is known here.
    """
    return error_of_counts(metric, value, LabelCounts.of(labels))


def error_of_counts(metric: str, value: float, counts: LabelCounts) -> float | None:
    """Return the standard error of a score, from the counts of its rows' labels.

    Args:
        metric: as `standard_error` takes it.
        value: the score.
        counts: of the labels; for a metric that `is_proportion`, the rows alone are enough.

    Returns:
        None where no formula for the metric is known here.
    """
    if not 0 <= value <= 1 or not counts.rows:
        return None
    if metric == "auc":
        binary = counts.ones and counts.zeros and counts.ones + counts.zeros == counts.rows
        return auc_standard_error(value, counts.ones, counts.zeros) if binary else None
    return proportion_standard_error(value, counts.rows) if is_proportion(metric) else None


def is_proportion(metric: str) -> bool:
    """Return whether a metric is the share of rows that were right, or wrong."""
    return metric.partition("@")[0] in PROPORTIONS


def proportion_standard_error(share: float, rows: int) -> float:
    """The standard error of a share of rows, such as an accuracy.

    It is half the width of Wilson's interval at one standard error. That is the usual sqrt(share * (1 - share) / rows)
    but where the share is close to 0 or 1, which a few rows do not prove.

    Source: Wilson, "Probable inference, the law of succession, and statistical inference", Journal of the American
    Statistical Association 22 (1927).

    Args:
        share: that was measured, 0 to 1.
        rows: how many were looked at, 1 or more.
    """
    return math.sqrt(share * (1 - share) / rows + 1 / (4 * rows**2)) / (1 + 1 / rows)


def auc_standard_error(auc: float, positives: int, negatives: int) -> float:
    """The standard error of an area under the ROC curve.

    Source: Hanley, McNeil, "The meaning and use of the area under a receiver operating characteristic (ROC) curve",
    Radiology 143 (1982), equation 2.

    Args:
        auc: the measured area, 0 to 1.
        positives: rows of the positive class, 1 or more.
        negatives: rows of the negative class, 1 or more.
    """
    q1 = auc / (2 - auc)
    q2 = 2 * auc**2 / (1 + auc)
    variance = auc * (1 - auc) + (positives - 1) * (q1 - auc**2) + (negatives - 1) * (q2 - auc**2)
    return math.sqrt(max(0.0, variance) / (positives * negatives))
