"""Kinds of files, by the ends of their names."""

from __future__ import annotations

import os

LIBSVM = (".libsvm", ".svm", ".svmlight")
"""Ends of files in libsvm's format."""
KINDS = {".csv": "csv", ".parquet": "parquet", **dict.fromkeys(LIBSVM, "libsvm")}
PACKED = (".gz", ".bz2", ".zst")
"""What pyarrow reads as if it were not compressed."""
PACKING = 5
"""About how many times as many bytes a compressed table of numbers has when it is open."""

ENDINGS = ".csv, .parquet, .libsvm, .svm or .svmlight, text perhaps with .gz, .bz2 or .zst behind"


def kind_of(path: str) -> str | None:
    """What a file holds and how it is compressed, such as "csv.gz"; None where that is no kind of rows."""
    base, packed = os.path.splitext(path)
    if packed not in PACKED:
        base, packed = path, ""
    kind = KINDS.get(os.path.splitext(base)[1])
    return None if kind is None or (packed and kind == "parquet") else kind + packed


def is_packed(path: str) -> bool:
    """Whether a file is compressed as a whole."""
    return path.endswith(PACKED)
