"""A PyTorch checkpoint: the function's own state, random states and positions in the data."""

from __future__ import annotations

import io
import pickle
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self

import torch

from trainers import storage
from trainers.checkpoint import Manifest
from trainers.errors import DataError
from trainers.pytorch.state import shards

_FORMAT = "warmband-torch-1"

IN_SHARDS = "state.pt"
"""The file of a checkpoint in shards that holds everything but what is in them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchCheckpoint:
    """A trial at the end of an epoch.

    Args:
        step: epochs in it.
        state: the dict that the training function handed to `report`, `plain`.
        random: the random state of each rank, by rank.
        updates: of each worker so far.
        positions: where each of rank 0's prepared datasets stands, in the order of `prepare_data`; all ranks' alike.
        ended: the metrics of the report that ended the trial early; None where it goes on.
        best: the best report's trial, units, value and state, where a job compares trials by that; else empty.
        ahead: metrics of the units behind the rung, up to `step`, of a trial whose objective came later; else empty.
        scales: the scale of losses of each rank, by rank, and its updates since it changed; empty where none is scaled.
    """

    step: int
    state: dict[str, Any]
    random: tuple[dict[str, Any], ...]
    updates: int
    positions: tuple[tuple[int, int], ...]
    ended: dict[str, float] | None = None
    scales: tuple[tuple[float, int], ...] = ()
    best: dict[str, Any] = field(default_factory=dict)
    ahead: dict[str, float] = field(default_factory=dict)

    @classmethod
    def none(cls) -> Self:
        """That of a trial whose function has reported no checkpoint: it begins again."""
        return cls(step=0, state={}, random=(), updates=0, positions=())

    def scale_of(self, rank: int) -> tuple[float, int] | None:
        """The scale of losses that a worker goes on with; None where none was scaled."""
        return self.scales[rank if rank < len(self.scales) else 0] if self.scales else None

    def to_bytes(self) -> bytes:
        """In PyTorch's own form, readable with `torch.load(..., weights_only=True)`."""
        stream = io.BytesIO()
        torch.save(
            {
                "format": _FORMAT,
                "step": self.step,
                "state": self.state,
                "random": list(self.random),
                "updates": self.updates,
                "positions": list(self.positions),
                "ended": self.ended,
                # A trial whose losses are not scaled leaves the same bytes as before there were such.
                **({"scales": list(self.scales)} if self.scales else {}),
                **({"best": self.best} if self.best else {}),
                **({"ahead": self.ahead} if self.ahead else {}),
            },
            stream,
        )
        return stream.getvalue()

    @classmethod
    def opened(cls, uri: str, manifest: Manifest, reader: shards.Reader) -> TorchCheckpoint:
        """One file as `read` reads it; of one in shards, tensors are read as they are used.

        Args:
            uri: of the file or folder.
            manifest: of it.
            reader: reads its files.

        Raises:
            DataError: a file is not there, cut short, or something else.
        """
        if not manifest.is_folder:
            return cls.read(uri, partial(reader.read, manifest=manifest))
        rest = cls.read(storage.join(uri, IN_SHARDS), lambda _: reader.read(uri, manifest, IN_SHARDS))
        return replace(rest, state=shards.opened(rest.state, uri, manifest, reader))

    @classmethod
    def read(cls, uri: str, read: Callable[[str], bytes] = storage.read) -> TorchCheckpoint:
        """As `to_bytes` made it; tensors are on the CPU.

        Args:
            uri: of the file.
            read: reads its bytes.

        Raises:
            DataError: the file is not there, cut short, or something else.
        """
        raw = read(uri)
        try:
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                packed = any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist())
            if packed:
                # PyTorch writes none such, and would unpack a megabyte to a gigabyte.
                raise _flawed(uri, "its parts are compressed")
            content = torch.load(io.BytesIO(raw), map_location="cpu", weights_only=True)
        except pickle.UnpicklingError:
            raise _flawed(uri, "it holds more than tensors and plain values, and is not loaded") from None
        except (RuntimeError, EOFError, ValueError, KeyError, zipfile.BadZipFile, NotImplementedError) as error:
            raise _flawed(uri, str(error).splitlines()[0] if str(error) else type(error).__name__) from None
        if not isinstance(content, dict) or content.get("format") != _FORMAT:
            raise _flawed(uri, "it was not written by a PyTorch trainer of this version")
        try:
            return cls(
                step=content["step"],
                state=content["state"],
                random=tuple(content["random"]),
                updates=content["updates"],
                positions=tuple(tuple(position) for position in content["positions"]),
                ended=content.get("ended"),  # It came later than the format, and so did the next.
                scales=tuple(tuple(scale) for scale in content.get("scales", ())),
                best=content.get("best", {}),
                ahead=content.get("ahead", {}),
            )
        except (KeyError, TypeError) as error:
            raise _flawed(uri, f"a part of it is missing or no such part ({error})") from None


def _flawed(uri: str, why: str) -> DataError:
    return DataError(
        f"checkpoint {storage.shown(uri)!r} is cut short or no checkpoint: {why}; restore the file, or train again"
    )
