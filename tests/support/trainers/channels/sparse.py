"""Sparse rows, and their entries by column."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from trainers import Channel
from trainers.channels import Table

RANDOM = np.random.default_rng(3)
ROWS = 23
X = sp.random(ROWS, 9, 0.3, "csr", np.float64, random_state=RANDOM)
X.data[::4] = 0.0
Y = np.arange(ROWS, dtype=np.float32)


def shown(table: Table) -> list[dict[int, float]]:
    """Return each row's entries by column."""
    rows = table.features
    assert sp.issparse(rows)
    assert (rows.format, rows.dtype) == ("csr", np.float32)
    ends = zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    return [dict(zip(rows.indices[a:b].tolist(), rows.data[a:b].tolist(), strict=True)) for a, b in ends]


WHOLE = shown(Channel.of((X, Y)).read_whole())
