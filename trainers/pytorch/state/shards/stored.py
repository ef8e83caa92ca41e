"""Tensors of a checkpoint in shards that are not read yet: each worker reads of them what it needs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from trainers import checkpoint
from trainers.checkpoint import Manifest
from trainers.pytorch.state.shards.folder import INDEX, Folder, fill
from trainers.pytorch.state.shards.tree import filled, is_sharded, mapped


def _getter(name: str) -> Any:
    """What PyTorch calls an attribute of a tensor, when it asks a class of tensors for it."""
    return getattr(Tensor, name).__get__


_ASPECTS = frozenset(
    [
        *map(_getter, ("shape", "dtype", "layout", "ndim", "requires_grad", "is_leaf", "itemsize", "nbytes")),
        *map(_getter, ("is_quantized", "is_sparse")),
        *(Tensor.size, Tensor.dim, Tensor.ndimension, Tensor.numel, Tensor.nelement, Tensor.element_size),
        *(Tensor.is_floating_point, Tensor.is_complex, Tensor.is_pinned, Tensor.__len__),
    ]
)
"""What can be said of a tensor without its values."""
_DEVICE = _getter("device")


class Reader(Protocol):
    """How a checkpoint's files are read; see `trainers.patient_storage.PatientStorage`."""

    def read(self, uri: str, manifest: Manifest = ..., part: str = ...) -> bytes:
        """See `trainers.checkpoint.load`."""

    def read_span(self, uri: str, part: str, at: int, size: int) -> bytes:
        """See `trainers.checkpoint.load_span`."""

    def check_sizes(self, uri: str, manifest: Manifest) -> None:
        """See `trainers.checkpoint.check_sizes`."""


class Impatient:
    """Reads at once, or not at all; see `Reader`."""

    def read(self, uri: str, manifest: Manifest = checkpoint.UNKNOWN, part: str = "") -> bytes:
        """See `trainers.checkpoint.load`."""
        return checkpoint.load(uri, manifest, part)

    def read_span(self, uri: str, part: str, at: int, size: int) -> bytes:
        """See `trainers.checkpoint.load_span`."""
        return checkpoint.load_span(uri, part, at, size)

    def check_sizes(self, uri: str, manifest: Manifest) -> None:
        """See `trainers.checkpoint.check_sizes`."""
        checkpoint.check_sizes(uri, manifest)


class Stored(Tensor):
    """A tensor of a checkpoint in shards, which is read as it is used.

    `load_state_dict` of a model whose parameters are DTensors reads this worker's slices; `to` and `copy.deepcopy` read
    nothing, so that an optimizer's `load_state_dict` takes it as it is. Everything else reads the whole tensor, once.
    """

    _folder: Folder
    _key: str
    _device: torch.device
    _whole: Tensor | None

    @staticmethod
    def of(folder: Folder, key: str, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Stored:
        """The tensor of a key in a folder.

        Args:
            folder: the checkpoint.
            key: of the tensor.
            dtype: what it is converted to when it is read; None: as it was saved.
            device: where it is to be then; None: the CPU.
        """
        entry = folder.entries[key]
        made = torch.empty(entry.size, dtype=dtype or entry.dtype, device="meta").as_subclass(Stored)
        made._folder, made._key, made._whole = folder, key, None
        made._device = device or torch.device("cpu")
        return made

    def whole(self) -> Tensor:
        """All of its values, the same tensor each time: what is changed in place stays so.

        Raises:
            CheckpointError: a file is missing, cut short or changed; it names file and trial.
            StorageError: it cannot be read.
        """
        if self._whole is None:
            self._whole = self._folder.read(self._key).to(dtype=self.dtype, device=self._device)
        return self._whole

    def read_into(self, target: Tensor) -> None:
        """Gives a tensor of its shape its values, of a DTensor those of this worker's slice; raises as `whole` does."""
        if self._whole is None and self.dtype in (target.dtype, self._folder.entries[self._key].dtype):
            self._folder.read_into(self._key, target)
        else:
            put(self.whole(), target)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        """Another one of the same values."""
        if self._whole is None:
            return Stored.of(self._folder, self._key, self.dtype, self._device)
        return self._whole.clone()

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Runs what PyTorch is asked to do, on the whole tensor where that takes its values."""
        given = dict(kwargs or {})
        if func in _ASPECTS:
            return super().__torch_function__(func, types, args, given)  # type: ignore[no-untyped-call]
        if func == _DEVICE:
            return args[0]._device
        if func is Tensor.to and args[0]._whole is None and len(args) == 1 and given.keys() <= {"dtype", "device"}:
            return args[0]._converted(**given)
        if func is Tensor.copy_ and not isinstance(args[0], Stored) and args[0].shape == args[-1].shape:
            args[1].read_into(args[0])
            return args[0]
        return func(*_read(args), **_read(given))

    def _converted(self, dtype: torch.dtype | None = None, device: Any = None) -> Stored:
        where = self._device if device is None else torch.device(device)
        return Stored.of(self._folder, self._key, dtype or self.dtype, where)


def opened(tree: Mapping[str, Any], uri: str, manifest: Manifest, reader: Reader) -> dict[str, Any]:
    """The state of a checkpoint in shards; its tensors are `Stored`.

    Args:
        tree: the values that are in no shard.
        uri: of the checkpoint.
        manifest: of it.
        reader: reads its files, now and as tensors are used.

    Raises:
        CheckpointError: a file is missing or has another size, or the index is none.
        StorageError: it cannot be read.
    """
    reader.check_sizes(uri, manifest)
    folder = Folder(uri, manifest, reader.read(uri, manifest, INDEX), partial(reader.read_span, uri))
    return filled(tree, {key: Stored.of(folder, key) for key in folder.entries})


def whole(state: Any) -> Any:
    """A state with all tensors read."""
    return mapped(state, lambda value: value.whole() if isinstance(value, Stored) else value)


def put(source: Tensor, target: Tensor) -> None:
    """Copies a whole tensor into another of its shape, of a DTensor into this worker's slice, without a collective."""
    if isinstance(source, Stored):
        source.read_into(target)
    elif not is_sharded(target):
        target.detach().copy_(source)
    else:
        fill(target, [((0,) * source.dim(), tuple(source.shape))], lambda _: source)


def _read(value: Any) -> Any:
    if isinstance(value, Stored):
        return value.whole()
    if isinstance(value, list | tuple):
        items = [_read(item) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {key: _read(item) for key, item in value.items()}
    return value
