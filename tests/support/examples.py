"""Examples of each kind: twenty of them, each of which says its number."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from PIL import Image
from pyarrow import parquet
from torch.utils.data import Dataset, IterableDataset

from trainers import Examples

ROWS = 20


class Squares(Dataset):
    """A dataset of rows (number, its square)."""

    def __init__(self, rows: int = ROWS) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, row: int) -> tuple[torch.Tensor, int]:
        return torch.tensor([float(row), float(row) ** 2]), row


class InOrder(IterableDataset):
    """The same rows as they come, in order."""

    def __iter__(self) -> Iterator[tuple[torch.Tensor, int]]:
        rows = Squares()
        return (rows[row] for row in range(ROWS))


class Counted(IterableDataset):
    """Rows as they come, in an order that global generators give; it counts how often it is read."""

    def __init__(self, rows: int = ROWS, length: int | None = None) -> None:
        self.rows, self.length, self.read = rows, length, 0

    def __len__(self) -> int:
        if self.length is None:
            raise TypeError("nobody knows")
        return self.length

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self.read += 1
        for row in torch.randperm(self.rows).tolist():
            yield {"row": row, "noise": torch.rand(2)}


def nothing() -> list[int]:
    return [1, 2, 3]


def breaks(length: bool) -> Dataset:
    if not length:
        raise OSError("no such share")
    return Squares(-1)


def image_folder(folder: Path, *, classes: bool = True) -> Path:
    """Images of two sizes, whose pixels are ten times their number."""
    for row in range(ROWS):
        within = folder / f"{'ab'[row % 2]}" if classes else folder
        within.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.full((8 + row % 3, 9, 3), 10 * row, np.uint8)).save(within / f"{row:02}.png")
    (folder / "notes.md").write_text("no image")
    return folder


def image_table(path: Path) -> Path:
    """The same in a Parquet file."""
    folder = image_folder(path.parent / "of-table", classes=False)
    raw = [(folder / f"{row:02}.png").read_bytes() for row in range(ROWS)]
    parquet.write_table(pa.table({"picture": raw, "kind": ["ba"[row % 2] for row in range(ROWS)]}), path)
    return path


def column_table(path: Path) -> Path:
    """Columns of many types and shapes."""
    rows = range(ROWS)
    grid = pa.FixedSizeListArray.from_arrays(
        pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(np.arange(ROWS), 6), pa.float32()), 3), 2
    )
    table = pa.table(
        {
            "row": pa.array(rows, pa.int64()),
            "short": pa.array(rows, pa.uint16()),
            "even": pa.array([row % 2 == 0 for row in rows]),
            "grid": grid,
            "tokens": pa.array([list(range(row % 4)) for row in rows], pa.list_(pa.int32())),
            "words": pa.array([f"word {row}" for row in rows]),
            "kind": pa.array(["ab"[row % 2] for row in rows]).dictionary_encode(),
        }
    )
    parquet.write_table(table, path)
    return path


def text_file(path: Path) -> Path:
    path.write_bytes(b"\xef\xbb\xbf" + b"".join(f"line {row}\r\n".encode() for row in range(ROWS - 1)) + b"line 19")
    return path


def hugging_face(folder: Path) -> Path:
    import datasets

    rows = {"row": list(range(ROWS)), "words": [f"word {row}" for row in range(ROWS)]}
    whole = datasets.Dataset.from_dict(rows)
    datasets.DatasetDict({"train": whole, "test": whole.select(range(3))}).save_to_disk(folder)
    return folder


def hugging_face_images(folder: Path) -> Path:
    """Images as bytes beside their numbers."""
    import datasets

    pictures = image_folder(folder.parent / "of-hugging-face", classes=False)
    raw = [{"bytes": (pictures / f"{row:02}.png").read_bytes(), "path": None} for row in range(ROWS)]
    kinds = datasets.Features({"row": datasets.Value("int64"), "image": datasets.Image()})
    resized = datasets.Dataset.from_dict({"row": list(range(ROWS)), "image": raw}, features=kinds)
    resized.save_to_disk(folder)
    return folder


KINDS: dict[str, Callable[[Path], Examples]] = {
    "images": lambda folder: Examples.images(image_folder(folder / "images"), size=4),
    "image-table": lambda folder: Examples.images(image_table(folder / "images.parquet"), size=4, mode="L"),
    "columns": lambda folder: Examples.columns(column_table(folder / "columns.parquet")),
    "text": lambda folder: Examples.text(text_file(folder / "lines.txt")),
    "named": lambda folder: Examples.named("tests.support.examples:Squares"),
    "iterable": lambda folder: Examples.named("tests.support.examples:Counted", length=ROWS),
    "hugging_face": lambda folder: Examples.hugging_face(hugging_face(folder / "words"), split="train"),
}
"""Makes a channel of each kind, in a folder."""


def numbers_in(kind: str, batch: Any) -> list[int]:
    """The numbers of the rows in a batch."""
    if kind == "images" or kind == "image-table":
        return [int(value) // 10 for value in batch[0][:, 0, 0, 0]]
    if kind == "text":
        return [int(line.removeprefix("line ")) for line in batch]
    rows: torch.Tensor = batch[1] if kind == "named" else batch["row"]
    return [int(row) for row in rows]
