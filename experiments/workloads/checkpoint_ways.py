"""Ways to save a network in shards, on processes of their own: in the background or not, gathered or each its part."""

from __future__ import annotations

import shutil
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import checkpoint as dcp
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.multiprocessing import get_context

from trainers.patient_storage import PatientStorage
from trainers.pytorch import shards

WAYS = ("in the background", "at once", "torch.save on rank 0", "dcp.save", "dcp.async_save")
"""Ours, ours while training waits, PyTorch's gathered state, and PyTorch's own checkpoints in shards."""

SECONDS = 1800.0
"""How long all processes may take."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """A transformer's size.

    Args:
        width: of its layers.
        layers: how many.
        vocabulary: rows of its embedding.
    """

    width: int
    layers: int
    vocabulary: int

    def made(self) -> nn.Module:
        """The network; of heads, each is 64 wide."""
        block = nn.TransformerEncoderLayer(self.width, self.width // 64, 4 * self.width, batch_first=True)
        blocks = nn.TransformerEncoder(block, self.layers, enable_nested_tensor=False)
        return nn.Sequential(nn.Embedding(self.vocabulary, self.width), blocks)


@dataclass(frozen=True, kw_only=True)
class Save:
    """One save.

    Args:
        still: seconds that training stands still for it.
        whole: seconds until the checkpoint is there.
        size: bytes of it.
    """

    still: float
    whole: float
    size: int


def measured(network: Network, workers: int, turns: int, folder: Path) -> tuple[int, dict[str, list[Save]]]:
    """Each way by turns, on as many processes, one thread each.

    Returns:
        The network's parameters, and the saves of each way.

    Raises:
        RuntimeError: a process failed; it says why.
    """
    context = get_context("spawn")
    answers: Queue[Any] = context.Queue()
    arguments = (workers, network, turns, str(folder), answers)
    processes = [context.Process(target=_work, args=(rank, *arguments), daemon=True) for rank in range(workers)]
    for process in processes:
        process.start()
    try:
        answer = answers.get(timeout=SECONDS)
    finally:
        for process in processes:
            process.join(10.0)
            process.kill()
    if isinstance(answer, str):
        raise RuntimeError(f"a process failed, so nothing was measured: {answer}")
    parameters, saves = answer
    return parameters, saves


def _work(rank: int, workers: int, network: Network, turns: int, folder: str, answers: Queue[Any]) -> None:
    try:
        torch.set_num_threads(1)
        store = dist.FileStore(f"{folder}/store", workers)
        dist.init_process_group("gloo", store=store, rank=rank, world_size=workers)
        answer = _measure(network, turns, Path(folder))
        if rank == 0:
            answers.put(answer)
        dist.barrier()
        dist.destroy_process_group()
    except Exception:
        answers.put(traceback.format_exc())


def _measure(network: Network, turns: int, folder: Path) -> tuple[int, dict[str, list[Save]]]:
    torch.manual_seed(0)
    model = network.made()
    parameters = sum(parameter.numel() for parameter in model.parameters())
    for layer in model.get_submodule("1.layers").children():
        fully_shard(layer)
    fully_shard(model)
    optimizer = torch.optim.Adam(model.parameters())
    for parameter in model.parameters():
        parameter.grad = torch.full_like(parameter, 1e-3)
    optimizer.step()
    optimizer.zero_grad()
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    saves: dict[str, list[Save]] = {way: [] for way in WAYS}
    for turn in range(turns + 1):
        for way in WAYS if turn % 2 else reversed(WAYS):
            save = _timed(_SAVES[way], state, folder / "job" / "trial" / "checkpoint")
            if turn:  # The first one of each warms up.
                saves[way].append(save)
    return parameters, saves


def _timed(save: Callable[[dict[str, Any], Path], Iterator[None]], state: dict[str, Any], target: Path) -> Save:
    """The longest of all processes' seconds."""
    if dist.get_rank() == 0:
        shutil.rmtree(target.parent.parent, ignore_errors=True)
        target.parent.mkdir(parents=True)
    dist.barrier()
    began = time.perf_counter()
    steps = save(state, target)
    next(steps)
    still = time.perf_counter() - began
    for _ in steps:
        pass
    whole = time.perf_counter() - began
    both = torch.tensor([still, whole])
    dist.all_reduce(both, dist.ReduceOp.MAX)
    files = [target] if target.is_file() else target.rglob("*")
    return Save(still=float(both[0]), whole=float(both[1]), size=sum(file.stat().st_size for file in files))


def _gather(value: Any) -> list[Any]:
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def _in_background(state: dict[str, Any], target: Path) -> Iterator[None]:
    place, rank, uri = PatientStorage(), dist.get_rank(), str(target)
    staged = shards.stage(state, rank, _gather)
    staged.begin(uri, place)
    yield
    staged.end(uri, rank, _gather, place, {"state": repr(sorted(staged.tree)).encode()})
    dist.barrier()


def _at_once(state: dict[str, Any], target: Path) -> Iterator[None]:
    for _ in _in_background(state, target):
        pass
    yield


def _gathered(state: dict[str, Any], target: Path) -> Iterator[None]:
    first = dist.get_rank() == 0
    whole = _full(state, keep=first)
    if first:
        torch.save(whole, target)
    dist.barrier()
    yield


def _full(value: Any, *, keep: bool) -> Any:
    """All tensors whole; only where they are to be kept."""
    if isinstance(value, Mapping):
        return {key: _full(item, keep=keep) for key, item in value.items()}
    if isinstance(value, list):
        return [_full(item, keep=keep) for item in value]
    if isinstance(value, DTensor):
        whole = value.full_tensor()
        return whole if keep else None
    return value


def _dcp(state: dict[str, Any], target: Path) -> Iterator[None]:
    dcp.save(state, storage_writer=_writer(target))
    yield


def _dcp_async(state: dict[str, Any], target: Path) -> Iterator[None]:
    future = dcp.async_save(state, storage_writer=_writer(target))
    yield
    future.result()  # type: ignore[union-attr]  # a future, without a stager of one's own
    dist.barrier()


def _writer(target: Path) -> dcp.FileSystemWriter:
    """Files that are not forced onto the disk, as the other ways write them."""
    return dcp.FileSystemWriter(target, sync_files=False)


_SAVES: dict[str, Callable[[dict[str, Any], Path], Iterator[None]]] = dict(
    zip(WAYS, (_in_background, _at_once, _gathered, _dcp, _dcp_async), strict=True)
)
