"""A table with columns of categories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

FRAME = pd.DataFrame(
    {
        "y": np.arange(12.0),
        "land": ["FR", "DE", None, "ÖS", "DE", "FR", "CH", "CH", "DE", None, "A b", "FR"],
        "x": np.arange(12) / 4,
        "zip": [10115, 99, 10115, 7, 7, 7, 99, 10115, 7, 99, 10115, 7],
    }
)
NAMED = ["land", "zip"]


def decoded(features: Any) -> list[list[Any]]:
    """Return the values by row, None for a missing one."""
    return [[None if pd.isna(value) else value for value in row] for row in features.astype(object).to_numpy().tolist()]
