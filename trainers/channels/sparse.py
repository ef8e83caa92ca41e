"""Sparse rows: SciPy's CSR in float32, where an entry that is absent is missing, and an explicit 0 is 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trainers.errors import DataError


def is_sparse(features: Any) -> bool:
    """Whether they are of one of SciPy's sparse kinds; nothing is imported to find that out."""
    return hasattr(features, "tocsr")


def csr_of(matrix: Any) -> Any:
    """Any sparse kind as a CSR matrix of float32 numbers whose entries stand once each, in order of their columns.

    Entries at one place are added up, as SciPy has it.

    Raises:
        DataError: it has not two dimensions, or holds no numbers.
    """
    from scipy.sparse import csr_matrix

    if matrix.ndim != 2:
        raise DataError(
            f"the {type(matrix).__name__} has shape {matrix.shape}: give two dimensions, one row an example"
        )
    if matrix.dtype.kind not in "iufb":
        raise DataError(f"the {type(matrix).__name__} holds {matrix.dtype} values, no numbers; give float32")
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy() if rows is matrix else rows
        rows.sum_duplicates()
    with np.errstate(over="ignore"):  # Too large becomes infinite, and that is refused.
        data = rows.data.astype(np.float32, copy=False)
    return csr_matrix((data, rows.indices, rows.indptr), shape=rows.shape)


def stacked(pieces: Sequence[Any]) -> Any:
    """The rows of CSR matrices, one matrix behind the other."""
    from scipy.sparse import vstack

    return vstack(pieces, format="csr", dtype=np.float32)


def parts_of(rows: Any) -> dict[str, Any]:
    """A CSR matrix as plain arrays, the same ones for the same rows."""
    return {
        "data": np.ascontiguousarray(rows.data),
        "indices": rows.indices.astype(np.int32),
        "indptr": rows.indptr.astype(np.int64),
        "shape": np.asarray(rows.shape, np.int64),
    }


def from_parts_of(parts: Any) -> Any:
    """The CSR matrix whose arrays `parts_of` gave."""
    from scipy.sparse import csr_matrix

    arrays = parts["data"], parts["indices"], parts["indptr"]
    rows = csr_matrix(arrays, shape=tuple(parts["shape"].tolist()))
    rows.check_format(full_check=True)
    return rows
