"""Damaged validation channels."""

from __future__ import annotations

from pathlib import Path

from tests.support.bad_input import GOOD, rows


def damaged(folder: Path, kind: str) -> Path:
    """A validation channel of which something is wrong."""
    path = folder / "validation.csv"
    match kind:
        case "empty":
            path.touch()
        case "header only":
            path.write_text("label,z,a,b\n")
        case "short line":
            path.write_text("label,z,a,b\n1,2,3,4\n0,2,3\n")
        case "long line":
            path.write_text("label,z,a,b\n1,2,3,4\n\n0,2,3,4,5\n")
        case "one class":
            path.write_text("label,z,a,b\n1,2,3,4\n1,2,3,4\n")
        case "not UTF-8":
            path.write_bytes("label,z,a,b\n1,2,3,\xe9\n".encode("latin-1"))
        case "UTF-16":
            path.write_text("label,z,a,b\n1,2,3,4\n", encoding="utf-16")
        case "text":
            path.write_text("label,z,a,b\n1,2,3,yes\n")
        case "cut short":
            path = path.with_suffix(".parquet")
            GOOD.to_parquet(path)
            path.write_bytes(path.read_bytes()[:-9])
        case "directory":
            path = folder / "parts"
            path.mkdir()
            (path / "README.md").touch()
        case "other columns":
            path = folder / "parts"
            path.mkdir()
            GOOD.to_csv(path / "1.csv", index=False)
            rows(columns="zac").to_csv(path / "2.csv", index=False)
    return path
