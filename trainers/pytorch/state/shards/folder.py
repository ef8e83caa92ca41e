"""A checkpoint's folder of shards as one worker reads it: the index of its pieces, and the slices of a tensor."""

from __future__ import annotations

import json
import math
import threading
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor

from trainers.checkpoint import Manifest, damaged

INDEX = "index.json"
"""The file of a folder that says where each piece of a tensor is."""

_FORMAT = "warmband-shards-1"

_AHEAD = 8 << 20
"""Bytes that are read of a file at least, for pieces that stand behind one another: a request takes long elsewhere."""

Box = tuple[tuple[int, ...], tuple[int, ...]]
"""Offsets and sizes of a part of a tensor, in rows, columns and so on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A part of a tensor in a file, row after row.

    Args:
        offsets: of its first element in the tensor.
        sizes: its shape.
        part: name of the file.
        at: where it begins in it.
        checksum: CRC-32 of its bytes.
    """

    offsets: tuple[int, ...]
    sizes: tuple[int, ...]
    part: str
    at: int
    checksum: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A tensor in a checkpoint.

    Args:
        key: its name, its path in the state.
        size: its shape.
        dtype: type of its numbers.
        pieces: that make it up.
    """

    key: str
    size: tuple[int, ...]
    dtype: torch.dtype
    pieces: tuple[Piece, ...]

    def to_json(self) -> dict[str, Any]:
        """Everything but the key, in plain values."""
        pieces = [[piece.offsets, piece.sizes, piece.part, piece.at, piece.checksum] for piece in self.pieces]
        return {"size": self.size, "dtype": str(self.dtype).removeprefix("torch."), "pieces": pieces}

    @classmethod
    def from_json(cls, key: str, recorded: Mapping[str, Any]) -> Self:
        """What `to_json` made this of; raises ValueError, TypeError or KeyError where it did not."""
        dtype = getattr(torch, str(recorded["dtype"]), None)
        if not isinstance(dtype, torch.dtype):
            raise ValueError(f"{recorded['dtype']!r} is no type of number")
        pieces = tuple(
            Piece(offsets=_whole(offsets), sizes=_whole(sizes), part=str(part), at=int(at), checksum=int(checksum))
            for offsets, sizes, part, at, checksum in recorded["pieces"]
        )
        entry = cls(key=key, size=_whole(recorded["size"]), dtype=dtype, pieces=pieces)
        if sum(math.prod(piece.sizes) for piece in pieces) != math.prod(entry.size):
            raise ValueError(f"the pieces of {key} do not make it up")
        return entry


def index_of(entries: Sequence[Entry]) -> bytes:
    """The index of a checkpoint's tensors."""
    return json.dumps({"format": _FORMAT, "tensors": {entry.key: entry.to_json() for entry in entries}}).encode()


class Folder:
    """A sealed folder of shards.

    Args:
        uri: of the checkpoint.
        manifest: of it: sizes of its files.
        index: the bytes of its index.
        read_span: reads bytes of a file, given its name, where they begin and how many there are; see
            `trainers.checkpoint.load_span`.

    Raises:
        CheckpointError: the index is none.
    """

    def __init__(self, uri: str, manifest: Manifest, index: bytes, read_span: Callable[[str, int, int], bytes]) -> None:
        self.uri = uri
        self._read_span = read_span
        self._sizes = {file.name: file.size for file in manifest.files}
        self._ahead: dict[str, tuple[int, bytes]] = {}
        self._lock = threading.Lock()
        try:
            content = json.loads(index)
            if content["format"] != _FORMAT:
                raise ValueError("it has another format")
            self.entries = {key: Entry.from_json(key, recorded) for key, recorded in content["tensors"].items()}
            for entry in self.entries.values():
                self._check_place(entry)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise damaged(uri, INDEX, f"it is not the index ({error})") from None

    def _check_place(self, entry: Entry) -> None:
        for piece in entry.pieces:
            length = math.prod(piece.sizes) * entry.dtype.itemsize
            ends = (offset + size for offset, size in zip(piece.offsets, piece.sizes, strict=True))
            outside = any(end > size for end, size in zip(ends, entry.size, strict=True))
            negative = min(piece.at, *piece.sizes, *piece.offsets, 0) < 0
            if outside or negative or piece.at + length > self._sizes.get(piece.part, 0):
                raise ValueError(f"a piece of {entry.key} is not in {piece.part!r}")

    def read(self, key: str) -> Tensor:
        """A whole tensor, on the CPU.

        Raises:
            CheckpointError: a file that has pieces of it is missing, cut short or changed; it names file and trial.
            StorageError: it cannot be read.
        """
        entry = self.entries[key]
        made = torch.empty(entry.size, dtype=entry.dtype, device="cpu")
        self.read_into(key, made)
        return made

    def read_into(self, key: str, target: Tensor) -> None:
        """Reads a tensor, or of a DTensor this worker's slice, into another of its shape.

        Args:
            key: of the tensor.
            target: what is filled, on any device and of any type of number; of a DTensor nobody else need fill its own.

        Raises:
            CheckpointError, StorageError: see `read`.
        """
        entry = self.entries[key]
        boxes = [(piece.offsets, piece.sizes) for piece in entry.pieces]
        fill(target, boxes, lambda number: self._piece(entry, entry.pieces[number]))

    def _piece(self, entry: Entry, piece: Piece) -> Tensor:
        length = math.prod(piece.sizes) * entry.dtype.itemsize
        if not length:
            return torch.empty(piece.sizes, dtype=entry.dtype, device="cpu")
        data = self._span(piece.part, piece.at, length)
        if zlib.crc32(data) != piece.checksum:
            raise damaged(self.uri, piece.part, f"{length} bytes from {piece.at} on are other than those")
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The given buffer is not writable")  # Nothing writes to it.
            return torch.frombuffer(data, dtype=entry.dtype).view(piece.sizes)

    def _span(self, part: str, at: int, length: int) -> bytes | memoryview:
        with self._lock:
            begin, block = self._ahead.get(part, (0, b""))
            if not begin <= at <= at + length <= begin + len(block):
                begin, block = at, self._read_span(part, at, min(max(length, _AHEAD), self._sizes[part] - at))
                self._ahead[part] = begin, block if length < _AHEAD else b""
        return memoryview(block)[at - begin : at - begin + length]


def fill(target: Tensor, boxes: Sequence[Box], piece: Callable[[int], Tensor]) -> None:
    """Fills a tensor, or this worker's slice of a DTensor, from pieces of one of the same shape, without a collective.

    `torch.distributed.checkpoint` plans what of which piece goes where.

    Args:
        target: what is filled.
        boxes: of the pieces, which together are the tensor.
        piece: gives one by its number in them; asked only for those that are needed.
    """
    # Imported late: a checkpoint of one file, the common case, needs none of it.
    from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner
    from torch.distributed.checkpoint.metadata import (
        ChunkStorageMetadata,
        Metadata,
        TensorProperties,
        TensorStorageMetadata,
    )

    chunks = [ChunkStorageMetadata(torch.Size(offsets), torch.Size(sizes)) for offsets, sizes in boxes]
    planner = DefaultLoadPlanner(flatten_state_dict=False, flatten_sharded_tensors=False)
    stored = TensorStorageMetadata(TensorProperties(target.dtype), target.size(), chunks)
    with torch.no_grad():
        planner.set_up_planner({"it": target.detach()}, Metadata({"it": stored}))
        for item in planner.create_local_plan().items:
            assert item.storage_index.index is not None, "the plan says which piece"
            source = piece(item.storage_index.index)
            within = zip(item.storage_offsets, item.lengths, strict=True)
            planner.resolve_tensor(item).copy_(source[tuple(slice(at, at + length) for at, length in within)])


def _whole(numbers: Any) -> tuple[int, ...]:
    return tuple(int(number) for number in numbers)
