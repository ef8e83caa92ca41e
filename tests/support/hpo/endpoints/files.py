"""Files of rows that a model predicts."""

from __future__ import annotations

from pathlib import Path

import pytest
from scipy.sparse import csr_matrix

from tests.support.scored_rows import FRAME


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    FRAME[:500].assign(y=1).to_csv(tmp_path / "one.csv", index=False)
    FRAME[500:][["c", "a", "b"]].to_parquet(tmp_path / "two.parquet", row_group_size=90)
    return [tmp_path / "one.csv", tmp_path / "two.parquet"]


def libsvm(path: Path, rows: csr_matrix, first: int) -> Path:
    lines = []
    for row in rows:
        entries = zip(row.indices, row.data.tolist(), strict=True)
        lines.append(" ".join(["1", *(f"{column + first}:{value!r}" for column, value in entries)]))
    path.write_text("\n".join(lines) + "\n")
    return path
