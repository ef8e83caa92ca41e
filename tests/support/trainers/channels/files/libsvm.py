"""A comparison of LIBSVM rows with a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from trainers.channels import Table


def same(table: Table, matrix: Any, labels: Any) -> None:
    """Compare a table with a matrix entry by entry, explicit zeros too."""
    rows, other = table.features, sp.csr_matrix(matrix.astype(np.float32))
    assert sp.issparse(rows)
    assert rows.shape == other.shape
    assert rows.dtype == table.labels.dtype == np.float32
    for part in ("indptr", "indices", "data"):
        np.testing.assert_array_equal(getattr(rows, part), getattr(other, part))
    np.testing.assert_array_equal(table.labels, labels)
