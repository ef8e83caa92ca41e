"""One training of PyTorch by turns: on a gang that is up, and in plain PyTorch, under torchrun or on a GPU."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from ray.train import ScalingConfig

from experiments.baselines.pytorch.torchrun import REPLICAS, SHARDED, Torchrun
from experiments.baselines.training_loops import HIDDEN, LEARNING, PROCESSOR, TRAIN, layers, plain
from experiments.workloads.repeated_trial import RepeatedTrial
from trainers import Layout, TorchTrainer
from trainers.channels import open_channels

SEED = 1729
GPU_NETWORKS = {"784-128-64-10": (100, HIDDEN), "784-4096-4096-10": (8192, (4096, 4096, 10))}
"""Rows of an update, and the layers behind the inputs."""


@dataclass(frozen=True, kw_only=True)
class Turns:
    """A training by turns.

    Args:
        what: is trained, and on what.
        samples: rows of all epochs.
        here: wall seconds of each turn here.
        plain: the same in plain PyTorch.
        difference: the largest of the weights of both after an epoch without shuffling; None where not compared.
        name: of the case.
        processor: median seconds of processors that rank 0 took for a turn: here, and in plain PyTorch. Other work on
            the machine hardly changes these; waiting for the other worker is not in them.
    """

    what: str
    samples: int
    here: list[float]
    plain: list[float]
    difference: float | None = None
    name: str = ""
    processor: tuple[float, float] | None = None

    @property
    def ratios(self) -> list[float]:
        """Samples a second here over those of plain PyTorch, by turn."""
        return [there / here for here, there in zip(self.here, self.plain, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is trained, and how its workers share it.

    Args:
        name: as tables call it.
        hyperparameters: of `experiments.baselines.training_loops`, `per_worker_batch_size` among them.
        rows: features and labels.
        epochs: of each turn.
        turns: of each side.
        wrapper: of plain PyTorch: `REPLICAS`, or `SHARDED`.
    """

    name: str
    hyperparameters: Mapping[str, Any]
    rows: tuple[Any, Any]
    epochs: int
    turns: int
    wrapper: str = REPLICAS


def by_turns(case: Case, workers: int, scratch: str) -> Turns:
    """A case on a gang and under torchrun, in turns; before them, both train an epoch in one order.

    Args:
        case: what is trained.
        workers: processes on each side.
        scratch: folder for rows and models.
    """
    features, labels = case.rows
    folder, trial = f"{scratch}/{case.name.replace(' ', '-')}", dict(case.hyperparameters)
    layout = Layout(shard=workers) if case.wrapper == SHARDED else None
    trainer = TorchTrainer(TRAIN, scaling=ScalingConfig(num_workers=workers), hyperparameters=trial, layout=layout)
    here, there = list[float](), list[float]()
    mine_busy, its_busy = list[float](), list[float]()
    with trainer.gangs("throughput", open_channels({"train": case.rows})) as gangs:
        gang = RepeatedTrial(gangs, trial, case.epochs, f"{folder}/here", SEED)
        gang.start(trainer.workers)
        torchrun = Torchrun(features, labels, workers, Path(folder, "torchrun"), niceness=gang.niceness)
        try:
            torchrun.start()
            told = {**trial, "seed": SEED, "wrapper": case.wrapper}
            in_order = {"shuffle": False}
            mine = trainer.load_model(gang.train(in_order, 1).segment.checkpoint)["model"]
            torchrun.train(told | in_order, 1)
            theirs = torchrun.model()
            for turn in range(case.turns):
                for who in ("here", "there") if turn % 2 else ("there", "here"):
                    if who == "here":
                        trained = gang.train()
                        here.append(trained.seconds)
                        mine_busy.append(trained.segment.reports[-1].metrics[PROCESSOR])
                    else:
                        there.append(torchrun.train(told, case.epochs))
                        its_busy.append(torchrun.processor_seconds)
        finally:
            torchrun.close()
    return Turns(
        what=f"{workers} workers, batch {trial['per_worker_batch_size']} each",
        samples=len(labels) * case.epochs,
        here=here,
        plain=there,
        difference=max(float((mine[name] - theirs[name]).abs().max()) for name in theirs),
        name=case.name,
        processor=(statistics.median(mine_busy), statistics.median(its_busy)),
    )


def on_gpu(rows: tuple[Any, Any], epochs: int, turns: int, scratch: str) -> list[Turns]:
    """The trainer's inner loop in this process and plain PyTorch's, in turns, by network and precision.

    Args:
        rows: features and labels.
        epochs: of each turn.
        turns: of each side.
        scratch: folder for models.
    """
    return [
        _one_on_gpu(rows, name, *GPU_NETWORKS[name], precision, epochs, turns, scratch)
        for name in GPU_NETWORKS
        for precision in ("fp32", "bf16")
    ]


def _one_on_gpu(
    rows: tuple[Any, Any],
    name: str,
    batch: int,
    behind: Sequence[int],
    precision: str,
    epochs: int,
    turns: int,
    scratch: str,
) -> Turns:
    features, labels = rows
    widths = [features.shape[1], *behind]
    trial = {**LEARNING, "widths": widths, "per_worker_batch_size": batch}
    scaling = ScalingConfig(num_workers=0, use_gpu=True)
    trainer = TorchTrainer(TRAIN, scaling=scaling, hyperparameters=trial, precision=precision)
    x, y = torch.from_numpy(features).cuda(), torch.from_numpy(labels).long().cuda()
    autocast = torch.autocast("cuda", dtype=torch.bfloat16) if precision == "bf16" else nullcontext()

    def by_hand() -> None:
        model = layers(widths).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING["lr"], momentum=LEARNING["momentum"])
        plain(model, optimizer, x, y, batch=batch, epochs=epochs, autocast=autocast)

    here, there = list[float](), list[float]()
    with trainer.gangs("gpu", open_channels({"train": rows})) as gangs:
        gang = RepeatedTrial(gangs, trial, epochs, f"{scratch}/gpu-{name}-{precision}", SEED)
        gang.start(trainer.workers)
        gang.train()
        by_hand()
        for turn in range(turns):
            for who in ("here", "there") if turn % 2 else ("there", "here"):
                if who == "here":
                    here.append(gang.train().segment.training_seconds)
                else:
                    there.append(_timed(by_hand))
    return Turns(what=f"{name}, batch {batch}, {precision}", samples=len(labels) * epochs, here=here, plain=there)


def _timed(work: Callable[[], None]) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - began
