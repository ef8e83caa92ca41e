"""PyTorch's own wrappers under torchrun: processes that train the loop of `training_loops` on demand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import TCPStore
from torch.distributed.checkpoint import FileSystemWriter, save
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel
from torch.optim import Optimizer

from experiments.baselines.training_loops import network_of, plain
from trainers.pytorch import ModelPlan

ANSWER = timedelta(seconds=300)
END_SECONDS = 30.0
REPLICAS, SHARDED = "DDP", "FSDP2"
SHARDS = "shards"
MODULE = "experiments.baselines.pytorch.torchrun"


class Torchrun:
    """Trainings on processes of `torch.distributed.run`, which stay up between them.

    Args:
        features: of all rows; process i has those whose number is i modulo the processes.
        labels: of all rows.
        workers: how many processes.
        folder: for the rows on their way, and for models.
        niceness: of the processes. Ray's workers have one of their own, and lose to others on a busy machine.
    """

    def __init__(self, features: Any, labels: Any, workers: int, folder: Path, *, niceness: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / "features.npy", features)
        np.save(folder / "labels.npy", labels)
        self._workers, self._folder, self._turns, self._sharded = workers, folder, 0, False
        self.processor_seconds = 0.0
        """Of the last training, on process 0, until its model was to be written."""
        # Commands and answers go through a key-value store: waiting has a deadline and takes no processor time.
        self._store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False, timeout=ANSWER)
        arguments = [str(self._store.port), str(folder), str(niceness)]
        run = [
            "--standalone",
            "--nproc-per-node",
            str(workers),
            "-m",
            "experiments.baselines.pytorch.torchrun",
            *arguments,
        ]
        self._process = subprocess.Popen([sys.executable, "-m", "torch.distributed.run", *run])

    def start(self) -> None:
        """Waits until every process has its rows and has joined the others."""
        self._answers()

    def train(self, hyperparameters: Mapping[str, Any], epochs: int) -> float:
        """Trains once; returns wall seconds until all have answered, the model written.

        Args:
            hyperparameters: of the loop, `seed`, and `wrapper`: `REPLICAS`, which it is without one, or `SHARDED`.
            epochs: passes over the rows.
        """
        self._turns += 1
        self._sharded = hyperparameters.get("wrapper") == SHARDED
        began = time.perf_counter()
        self._store.set(f"told/{self._turns}", json.dumps({**hyperparameters, "epochs": epochs}))
        self._answers()
        seconds = time.perf_counter() - began
        self.processor_seconds = float(self._store.get(f"processor/{self._turns}"))
        return seconds

    def model(self) -> dict[str, torch.Tensor]:
        """The state of the model that was trained last."""
        whole = self._folder / "model.pt"
        if self._sharded:
            dcp_to_torch_save(self._folder / SHARDS, whole)
        state: dict[str, torch.Tensor] = torch.load(whole, weights_only=True)["model"]
        return state

    def close(self) -> None:
        """Ends the processes."""
        self._store.set(f"told/{self._turns + 1}", "")
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            self._process.wait(END_SECONDS)

    def _answers(self) -> None:
        for rank in range(self._workers):
            try:
                answer = self._store.get(f"answer/{self._turns}/{rank}").decode()
            except RuntimeError as error:
                waited = f"waited {ANSWER.total_seconds():.0f} s for process {rank} under torchrun"
                raise RuntimeError(f"{waited}, in vain; its output says why") from error
            if answer:
                raise RuntimeError(f"process {rank} under torchrun failed, so nothing was measured: {answer}")


def main(port: int, folder: Path, niceness: int) -> None:
    """One of the processes: loads its rows, joins, and trains whenever it is told to."""
    os.setpriority(os.PRIO_PROCESS, 0, niceness)
    torch.set_num_threads(1)
    store = TCPStore("127.0.0.1", port, is_master=False, timeout=timedelta(hours=1))
    dist.init_process_group("gloo")
    rank, world_size = dist.get_rank(), dist.get_world_size()
    mine = slice(rank, None, world_size)
    features = torch.from_numpy(np.ascontiguousarray(np.load(folder / "features.npy", mmap_mode="r")[mine]))
    labels = torch.from_numpy(np.ascontiguousarray(np.load(folder / "labels.npy", mmap_mode="r")[mine])).long()
    turn = 0
    store.set(f"answer/{turn}/{rank}", "")
    while told := store.get(f"told/{(turn := turn + 1)}").decode():
        try:
            seconds = _train(json.loads(told), features, labels, folder)
            if rank == 0:
                store.set(f"processor/{turn}", str(seconds))
            store.set(f"answer/{turn}/{rank}", "")
        except Exception as error:
            store.set(f"answer/{turn}/{rank}", f"{type(error).__name__}: {error}")
            raise
    dist.destroy_process_group()


def _train(given: dict[str, Any], features: torch.Tensor, labels: torch.Tensor, folder: Path) -> float:
    """Trains once; returns the processor seconds of it."""
    began = time.process_time()
    torch.manual_seed(given["seed"])
    network, sharded = network_of(given), given.get("wrapper") == SHARDED
    model = network.model(given)
    wrapped = _shard(model, network.plan) if sharded else DistributedDataParallel(model)
    optimizer = network.optimizer(model, given)
    plain(
        wrapped,
        optimizer,
        features,
        labels,
        batch=given["per_worker_batch_size"],
        epochs=given["epochs"],
        shuffle=given["shuffle"],
        text=network.text,
    )
    seconds = time.process_time() - began
    _write(model, optimizer, folder, sharded=sharded)
    return seconds


def _shard(model: nn.Module, plan: ModelPlan | None) -> nn.Module:
    """The model with each block of its plan in shards, and the rest; every process begins with rank 0's parameters."""
    for parameter in model.parameters():
        dist.broadcast(parameter.detach(), 0)
    blocks = tuple(plan.blocks or ()) if plan else ()
    for module in model.modules():
        if isinstance(module, blocks):
            fully_shard(module)
    fully_shard(model)
    return model


def _write(model: nn.Module, optimizer: Optimizer, folder: Path, *, sharded: bool) -> None:
    """The model and its optimizer's state, in the way that PyTorch documents for each wrapper."""
    if sharded:
        of_model, of_optimizer = get_state_dict(model, optimizer)
        save(
            {"model": of_model, "optimizer": of_optimizer},
            storage_writer=FileSystemWriter(folder / SHARDS, overwrite=True),
        )
    elif dist.get_rank() == 0:
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, folder / "model.pt")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
