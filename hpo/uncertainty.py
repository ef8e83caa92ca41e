"""How uncertain a score is, given the rows that it was measured on."""

from __future__ import annotations

import math


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
