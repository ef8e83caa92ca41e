"""Saving of a state in shards: who writes which piece is agreed upon, pieces are copied, and a thread writes them."""

from __future__ import annotations

import math
import threading
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor

from trainers.checkpoint import UNKNOWN, File, Manifest
from trainers.errors import TrialError, UnsavedError
from trainers.pytorch.state.shards.folder import INDEX, Entry, Piece, index_of
from trainers.pytorch.state.shards.stored import Stored, put
from trainers.pytorch.state.shards.tree import is_large, is_sharded, leaves, mapped, merged, on_host, split

if TYPE_CHECKING:
    from torch.distributed.checkpoint.metadata import Metadata
    from torch.distributed.checkpoint.planner import SavePlan, WriteItem

_ALIGNED = 64
"""Bytes that each piece of a file begins at a multiple of."""

_LEAVE_SECONDS = 10.0
"""How long a worker whose trial has failed waits for what it still writes."""

Gather = Callable[[Any], list[Any]]
"""Gives each rank's value to all, by rank; every rank calls it."""


class Place(Protocol):
    """Where a checkpoint is written; see `trainers.patient_storage.PatientStorage`."""

    def write_part(self, uri: str, name: str, data: bytes | memoryview) -> File:
        """See `trainers.checkpoint.save_part`."""

    def seal(self, uri: str, files: Iterable[File]) -> Manifest:
        """See `trainers.checkpoint.seal`."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A piece of a tensor in this worker's file; its checksum is not known yet."""

    key: str
    piece: Piece
    length: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """What a worker has written."""

    files: tuple[File, ...]
    pieces: tuple[tuple[str, Piece], ...]


class Staged:
    """A state in shards, copied to the host's memory, as one worker holds it.

    Args:
        tree: the values that are in no shard, all workers' together.
        tensors: size and type of number of each tensor, by key.
        placed: where this worker's pieces are in its file.
        data: the bytes of its file.
        name: of its file.
        seconds: that it took to copy them.
    """

    def __init__(
        self,
        tree: dict[str, Any],
        tensors: Mapping[str, tuple[tuple[int, ...], torch.dtype]],
        placed: Sequence[_Placed],
        data: Tensor,
        name: str,
        seconds: float,
    ) -> None:
        self.tree = tree
        self.seconds = seconds
        self._tensors = tensors
        self._placed = placed
        self._data: Tensor | None = data
        self._name = name
        self._outcome: _Written | BaseException | None = None
        self._given_up = False
        self._thread: threading.Thread | None = None

    def begin(self, uri: str, place: Place) -> None:
        """Begins to write this worker's file, in the background.

        Args:
            uri: of the checkpoint.
            place: where it is written.
        """
        self._thread = threading.Thread(target=self._write, args=(uri, place), name="checkpoint", daemon=True)
        self._thread.start()

    def give_up(self) -> None:
        """Lets what is being written end, for a while: later, it is a file of a name that no manifest has."""
        self._given_up = True
        if self._thread is not None:
            self._thread.join(_LEAVE_SECONDS)

    def end(self, uri: str, rank: int, gather: Gather, place: Place, others: Mapping[str, bytes]) -> Manifest:
        """Waits for all workers' files; rank 0 then seals the checkpoint. Every rank calls it.

        Args:
            uri: of the checkpoint.
            rank: of this worker.
            gather: see `stage`.
            place: where it is written.
            others: further files that rank 0 writes, by name.

        Returns:
            The manifest on rank 0; the others do not know it.

        Raises:
            UnsavedError: on rank 0, some worker's file cannot be written; there is no checkpoint then.
        """
        assert self._thread is not None, "it is begun before it ends"
        self._thread.join()
        if isinstance(self._outcome, BaseException) and not isinstance(self._outcome, UnsavedError):
            raise self._outcome
        outcomes = gather(str(self._outcome) if isinstance(self._outcome, UnsavedError) else self._outcome)
        if rank:
            return UNKNOWN
        written = [outcome for outcome in outcomes if isinstance(outcome, _Written)]
        if len(written) < len(outcomes):
            raise UnsavedError(next(outcome for outcome in outcomes if isinstance(outcome, str)))
        pieces: dict[str, list[Piece]] = {key: [] for key in self._tensors}
        for key, piece in (each for own in written for each in own.pieces):
            pieces[key].append(piece)
        entries = [
            Entry(key=key, size=size, dtype=dtype, pieces=tuple(pieces[key]))
            for key, (size, dtype) in self._tensors.items()
        ]
        named = {INDEX: index_of(entries), **others}
        own = [place.write_part(uri, name, data) for name, data in named.items()]
        return place.seal(uri, [*own, *(file for each in written for file in each.files)])

    def _write(self, uri: str, place: Place) -> None:
        try:
            self._outcome = self._written(uri, place)
        except BaseException as error:
            self._outcome = error

    def _written(self, uri: str, place: Place) -> _Written:
        assert self._data is not None, "it is written once"
        data, self._data = self._data.numpy().data, None
        pieces = []
        for placed in self._placed:
            checksum = zlib.crc32(data[placed.piece.at : placed.piece.at + placed.length])
            pieces.append((placed.key, replace(placed.piece, checksum=checksum)))
        files: tuple[File, ...] = ()
        if len(data) and not self._given_up:
            files = (place.write_part(uri, self._name, data),)
        return _Written(files=files, pieces=tuple(pieces))


def needed(state: Any) -> bool:
    """Whether a state holds DTensors, so that no worker has all of it, or what is still in a checkpoint in shards."""
    return any(is_sharded(leaf) or isinstance(leaf, Stored) for leaf in leaves(state))


def stage(state: Mapping[str, Any], rank: int, gather: Gather, *, order: Sequence[str] = ()) -> Staged:
    """Copies this worker's part of a state to the host's memory; who has which part all workers agree upon.

    What several workers have is written once: of slices, by the one that has least to write; of other values, the first
    one's count. Workers may have different parts of a model: its state is all of their states together, and that of an
    optimizer too where it has names (see `named`).

    Args:
        state: what this worker has: nested dicts and lists of tensors, DTensors and plain values.
        rank: of this worker.
        gather: gives each rank's value to all.
        order: names of the parameters of the whole model; it says how those of an optimizer are numbered.

    Raises:
        TrialError: the workers' parts do not make up a state.
    """
    # Imported late: a checkpoint of one file, the common case, needs none of it.
    from torch.distributed.checkpoint.default_planner import DefaultSavePlanner

    began = time.perf_counter()
    tree, tensors = split(state, lambda value: is_sharded(value) or isinstance(value, Stored) or is_large(value))
    tree = mapped(tree, on_host)
    planner = DefaultSavePlanner(flatten_state_dict=False, flatten_sharded_tensors=False)
    planner.set_up_planner(tensors, is_coordinator=rank == 0)
    gathered = gather((tree, _divisible(planner.create_local_plan(), tensors), uuid.uuid4().hex[:8]))
    _check_alike([plan for _, plan, _ in gathered])
    try:
        plans, metadata = planner.create_global_plan(_once([plan for _, plan, _ in gathered]))
    except (ValueError, AssertionError) as error:
        raise TrialError(f"report(checkpoint=...): the workers' parts do not make up a state: {error}") from error
    name = _name(rank, gathered[0][2])
    with torch.no_grad():
        placed, data = _staged(planner.finish_plan(plans[rank]), planner.resolve_data, name)
    places = {parameter: number for number, parameter in enumerate(order)}
    whole = merged([tree for tree, _, _ in gathered], places)
    return Staged(whole, _tensors(metadata), placed, data, name, time.perf_counter() - began)


def _name(rank: int, attempt: str) -> str:
    """The file of a worker; what a worker that was lost still writes has another name."""
    return f"shard-{rank:05d}-{attempt}"


def _staged(plan: SavePlan, data_of: Callable[[WriteItem], Any], name: str) -> tuple[list[_Placed], Tensor]:
    """The pieces of a worker, one behind the other in what its file is to hold."""
    placed, at = [], 0
    for item in plan.items:
        written = item.tensor_data
        assert written is not None, "nothing but tensors is in shards"
        offsets, sizes = tuple(written.chunk.offsets), tuple(written.chunk.sizes)
        length = math.prod(sizes) * written.properties.dtype.itemsize
        piece = Piece(offsets=offsets, sizes=sizes, part=name, at=at, checksum=0)
        placed.append(_Placed(item.index.fqn, piece, length))
        at += -(-length // _ALIGNED) * _ALIGNED
    data = torch.empty(at, dtype=torch.uint8, device="cpu")
    for item, each in zip(plan.items, placed, strict=True):
        if each.length:
            source: Tensor = data_of(item)
            begin = each.piece.at
            put(source, data[begin : begin + each.length].view(source.dtype).view(each.piece.sizes))
        # What lies between pieces is nothing, and always the same.
        data[each.piece.at + each.length : each.piece.at + -(-each.length // _ALIGNED) * _ALIGNED].zero_()
    return [each for each in placed if each.length], data


def _divisible(plan: SavePlan, tensors: Mapping[str, Tensor]) -> SavePlan:
    """A plan in which what is still in a checkpoint, and alike for all, is anybody's to write, as a slice is."""
    from torch.distributed.checkpoint.planner import WriteItemType

    return replace(
        plan,
        items=[
            replace(item, type=WriteItemType.SHARD) if isinstance(tensors[item.index.fqn], Stored) else item
            for item in plan.items
        ],
    )


def _once(plans: Sequence[SavePlan]) -> list[SavePlan]:
    """The plans without plain tensors that a worker before has too, whose values count."""
    from torch.distributed.checkpoint.planner import WriteItemType

    seen: set[str] = set()
    kept = []
    for plan in plans:
        items = [item for item in plan.items if item.type == WriteItemType.SHARD or item.index.fqn not in seen]
        seen.update(item.index.fqn for item in plan.items if item.type != WriteItemType.SHARD)
        kept.append(replace(plan, items=items))
    return kept


def _check_alike(plans: Sequence[SavePlan]) -> None:
    """Refuses tensors of one name that are of different kinds: of different parts of a model, say."""
    first: dict[str, tuple[int, Any]] = {}
    for rank, plan in enumerate(plans):
        for item in plan.items:
            assert item.tensor_data is not None, "nothing but tensors is in shards"
            kind = (item.type.name, tuple(item.tensor_data.size), item.tensor_data.properties.dtype)
            other, before = first.setdefault(item.index.fqn, (rank, kind))
            if before != kind:
                raise TrialError(
                    f"report(checkpoint=...): {item.index.fqn} is a tensor of shape {before[1]} and {before[2]} on "
                    f"rank {other}, and of {kind[1]} and {kind[2]} on rank {rank}; give what workers hold parts of as "
                    "DTensors, and what differs another name on each"
                )


def _tensors(metadata: Metadata) -> dict[str, tuple[tuple[int, ...], torch.dtype]]:
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

    return {
        key: (tuple(stored.size), stored.properties.dtype)
        for key, stored in metadata.state_dict_metadata.items()
        if isinstance(stored, TensorStorageMetadata)
    }
