"""A table whose columns have roles, and one of queries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

ROWS = 23
RANDOM = np.random.default_rng(3)
FRAME = pd.DataFrame(
    {
        "y": RANDOM.integers(0, 2, ROWS).astype(np.float32),
        "x": RANDOM.normal(size=ROWS).astype(np.float32),
        "w": RANDOM.gamma(1.0, size=ROWS).astype(np.float32),
        "z": RANDOM.normal(size=ROWS).astype(np.float32),
        "m0": RANDOM.normal(size=ROWS).astype(np.float32),
        "m1": RANDOM.normal(size=ROWS).astype(np.float32),
    }
)
SAID: dict[str, Any] = {"weight": "w", "base_margin": ["m0", "m1"]}
QUERIES = pd.DataFrame({"y": np.arange(20.0), "q": np.repeat([7, 3, 90_000_001, 5, 90_000_000], [3, 1, 8, 2, 6])})
QUERIES = QUERIES.assign(x=QUERIES["y"] * 2)
