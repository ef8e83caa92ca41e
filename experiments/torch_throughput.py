"""PyTorch on gangs beside PyTorch itself: samples a second under torchrun, starting a trial with Ray Train, a GPU.

    python -m experiments.torch_throughput [--workers 2] [--data-dir DIR] [--out DIR] [--quick]

All parts train a fully connected network by SGD with momentum (`experiments.baselines.training_loops` has the loop
twice, by hand and as a training function); the first on MNIST where it is found, otherwise on scikit-learn's digits,
many times over.

*Throughput*: one trial on a gang that is up, from handing out the assignment until its result is there, its checkpoint
written; against the same loop in plain PyTorch on as many processes of `torch.distributed.run`, with
`DistributedDataParallel` and gloo, from telling them to train until all have answered, the checkpoint written. On both
sides rows are read before and lie in memory as tensors, in another order in each epoch; processes have one thread each
and the same niceness. The two take turns, and the promise is on the median of the ratios within a turn. That both did
the same work shows in the weights after an epoch without shuffling, which have to agree.

*Starting*: from handing a trial to a gang that is up until its first training step; against calling `fit()` of
`ray.train.torch.TorchTrainer`, as Ray documents it, until its first training step. To be fair to Ray Train, it polls
its workers as often as gangs do (its default is ten times slower), and reads its rows as they do, not through Ray Data.

*GPU*: the trainer's inner loop in this process against plain PyTorch's, by turns, where there is one.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import ray
import torch
import typer
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer as RayTorchTrainer, prepare_model
from rich.console import Console, Group

from experiments.baselines.ray_as_documented import ENVIRONMENT
from experiments.baselines.torchrun import Torchrun
from experiments.baselines.training_loops import TRAIN, layers, plain
from experiments.shared.benchmark import Target, markdown, promised, promises, table, targets_to_json, write
from experiments.workloads.repeated_trial import RepeatedTrial
from experiments.workloads.small_job import start_ray
from hpo.cli import errors_in_words
from trainers import Channel, TorchTrainer
from trainers.channels import open_channels
from trainers.datasets import Dataset, find, load

SEED, BATCH = 1729, 100
LEARNING = {"lr": 0.05, "momentum": 0.9, "shuffle": True}
HIDDEN = (128, 64, 10)
GPU_NETWORKS = {"784-128-64-10": (100, HIDDEN), "784-4096-4096-10": (8192, (4096, 4096, 10))}
"""Rows of an update, and the layers behind the inputs."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How large each part is: epochs of a trial, turns, starts of ours and of Ray Train's."""

    epochs: int = 5
    turns: int = 11
    starts: int = 50
    documented_starts: int = 5


QUICK = Scale(epochs=1, turns=3, starts=5, documented_starts=1)


@dataclass(frozen=True, kw_only=True)
class Turns:
    """A training by turns.

    Args:
        what: is trained, and on what.
        samples: rows of all epochs.
        here: wall seconds of each turn here.
        plain: the same in plain PyTorch.
        difference: the largest of the weights of both after an epoch without shuffling; None where not compared.
    """

    what: str
    samples: int
    here: list[float]
    plain: list[float]
    difference: float | None = None

    @property
    def ratios(self) -> list[float]:
        """Samples a second here over those of plain PyTorch, by turn."""
        return [there / here for here, there in zip(self.here, self.plain, strict=True)]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Everything: throughput under torchrun, seconds of each start, and loops on a GPU by network and precision.

    Args:
        workers: processes on each side, GPUs excepted.
        rows: the dataset that was trained on.
        throughput: the first part.
        starts: seconds of each start here.
        documented: of each with Ray Train.
        gpu: the third part; empty without a GPU.
        device: the GPU's name.
    """

    workers: int
    rows: str
    throughput: Turns
    starts: list[float]
    documented: list[float]
    gpu: list[Turns] = field(default_factory=list)
    device: str = ""


# ---- throughput


def throughput(dataset: Dataset, workers: int, scale: Scale, scratch: str) -> Turns:
    """One trial on a gang and under torchrun, in turns."""
    features, labels = dataset.train
    trial = {**LEARNING, "widths": [features.shape[1], *HIDDEN], "per_worker_batch_size": BATCH}
    trainer = TorchTrainer(TRAIN, scaling=ScalingConfig(num_workers=workers), hyperparameters=trial)
    here, there = list[float](), list[float]()
    with trainer.gangs("throughput", open_channels({"train": dataset.train})) as gangs:
        gang = RepeatedTrial(gangs, trial, scale.epochs, f"{scratch}/here", SEED)
        gang.start(trainer.workers)
        torchrun = Torchrun(features, labels, workers, Path(scratch, "torchrun"), niceness=gang.niceness)
        try:
            torchrun.start()
            told = {**trial, "seed": SEED}
            in_order = {"shuffle": False}
            mine = trainer.load_model(gang.train(in_order, 1).segment.checkpoint)["model"]
            _, theirs = torchrun.train(told | in_order, 1)
            for turn in range(scale.turns):
                for who in ("here", "there") if turn % 2 else ("there", "here"):
                    if who == "here":
                        here.append(gang.train().seconds)
                    else:
                        there.append(torchrun.train(told, scale.epochs)[0])
        finally:
            torchrun.close()
    return Turns(
        what=f"{workers} workers, batch {BATCH} each",
        samples=len(labels) * scale.epochs,
        here=here,
        plain=there,
        difference=max(float((mine[name] - theirs[name]).abs().max()) for name in theirs),
    )


# ---- starting a trial


def starts(dataset: Dataset, workers: int, scale: Scale, scratch: str) -> list[float]:
    """Seconds from handing out to the first step, on a gang that is up."""
    trial = {**LEARNING, "widths": [dataset.train[0].shape[1], *HIDDEN], "per_worker_batch_size": BATCH}
    trainer = TorchTrainer(TRAIN, scaling=ScalingConfig(num_workers=workers), hyperparameters=trial)
    with trainer.gangs("starts", open_channels({"train": dataset.train})) as gangs:
        gang = RepeatedTrial(gangs, trial, 1, f"{scratch}/starts", SEED)
        gang.start(trainer.workers)
        gang.train()
        return [gang.train().starting for _ in range(scale.starts)]


def documented_starts(dataset: Dataset, workers: int, scale: Scale, scratch: str) -> list[float]:
    """Seconds from calling `fit()` to the first step, as Ray documents it."""
    placed = Channel.of(dataset.train, name="train").place(workers)
    found = []
    for number in range(scale.documented_starts):
        trainer = RayTorchTrainer(
            documented_loop,
            train_loop_config={**LEARNING, "widths": [dataset.train[0].shape[1], *HIDDEN], "train": placed},
            scaling_config=ScalingConfig(num_workers=workers),
            run_config=RunConfig(name=f"documented-{number}", storage_path=f"{scratch}/documented"),
        )
        called = time.time()
        result = trainer.fit()
        assert result.metrics is not None, "the loop reports once, with a checkpoint"
        found.append(result.metrics["first_step_at"] - called)
    return found


def documented_loop(config: dict[str, Any]) -> None:
    """What each worker of Ray Train runs."""
    context = ray.train.get_context()
    rows = config["train"].read(context.get_world_rank(), context.get_world_size())
    features, labels = torch.from_numpy(rows.features.copy()), torch.from_numpy(rows.labels.copy()).long()
    model = prepare_model(layers(config["widths"]))
    optimizer = torch.optim.SGD(model.parameters(), lr=config["lr"], momentum=config["momentum"])
    first_step_at = time.time()
    loss = plain(model, optimizer, features, labels, batch=BATCH, epochs=1)
    metrics, first = {"first_step_at": first_step_at, "train:loss": loss}, context.get_world_rank() == 0
    with tempfile.TemporaryDirectory() as folder:
        if first:
            torch.save(model.state_dict(), f"{folder}/model.pt")
        ray.train.report(metrics, checkpoint=Checkpoint.from_directory(folder) if first else None)


# ---- on a GPU


def on_gpu(dataset: Dataset, scale: Scale, scratch: str) -> list[Turns]:
    """The trainer's inner loop in this process and plain PyTorch's, in turns, by network and precision."""
    return [
        _one_on_gpu(dataset, name, *GPU_NETWORKS[name], precision, scale, scratch)
        for name in GPU_NETWORKS
        for precision in ("fp32", "bf16")
    ]


def _one_on_gpu(
    dataset: Dataset, name: str, batch: int, behind: Sequence[int], precision: str, scale: Scale, scratch: str
) -> Turns:
    features, labels = dataset.train
    widths = [features.shape[1], *behind]
    trial = {**LEARNING, "widths": widths, "per_worker_batch_size": batch}
    scaling = ScalingConfig(num_workers=0, use_gpu=True)
    trainer = TorchTrainer(TRAIN, scaling=scaling, hyperparameters=trial, precision=precision)
    x, y = torch.from_numpy(features).cuda(), torch.from_numpy(labels).long().cuda()
    autocast = torch.autocast("cuda", dtype=torch.bfloat16) if precision == "bf16" else nullcontext()

    def by_hand() -> None:
        model = layers(widths).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING["lr"], momentum=LEARNING["momentum"])
        plain(model, optimizer, x, y, batch=batch, epochs=scale.epochs, autocast=autocast)

    here, there = list[float](), list[float]()
    with trainer.gangs("gpu", open_channels({"train": dataset.train})) as gangs:
        gang = RepeatedTrial(gangs, trial, scale.epochs, f"{scratch}/gpu-{name}-{precision}", SEED)
        gang.start(trainer.workers)
        gang.train()
        by_hand()
        for turn in range(scale.turns):
            for who in ("here", "there") if turn % 2 else ("there", "here"):
                if who == "here":
                    here.append(gang.train().segment.training_seconds)
                else:
                    there.append(_timed(by_hand))
    return Turns(what=f"{name}, batch {batch}, {precision}", samples=len(labels) * scale.epochs, here=here, plain=there)


def _timed(work: Callable[[], None]) -> float:
    torch.cuda.synchronize()
    began = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - began


# ---- what came out


def targets(measured: Measured) -> list[Target]:
    """The promises, and what was measured of each."""
    turns = measured.throughput
    return [
        Target(
            promise="samples a second, over torchrun's",
            limit=0.97,
            measured=statistics.median(turns.ratios),
            unit="times",
            at_least=True,
            note=_spread(turns),
        ),
        Target(
            promise="starts, times shorter than Ray Train's",
            limit=100,
            measured=statistics.median(measured.documented) / statistics.median(measured.starts),
            unit="x",
            at_least=True,
            note=f"medians of {len(measured.starts)} and {len(measured.documented)}",
        ),
    ]


def _spread(turns: Turns) -> str:
    quartiles = ", ".join(f"{ratio:.3f}" for ratio in statistics.quantiles(turns.ratios, n=4))
    return f"quartiles of {len(turns.ratios)} turns: {quartiles}"


def result(measured: Measured) -> dict[str, Any]:
    """Everything measured, for result.json."""
    return {
        "setting": {**LEARNING, "batch": BATCH, "hidden": HIDDEN, "seed": SEED},
        "environment": ENVIRONMENT,
        **asdict(measured),
        "targets": targets_to_json(targets(measured)),
    }


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """What docs/benchmarks.md shows: what was trained, its speeds, the seconds of starts, and a GPU where one was."""
    turns = {**result, "throughput": Turns(**result["throughput"]), "gpu": [Turns(**of) for of in result["gpu"]]}
    measured = Measured(**{name: turns[name] for name in Measured.__dataclass_fields__})
    hidden = "-".join(map(str, result["setting"]["hidden"]))
    made = {
        "trained": f"{measured.rows}; layers of {hidden} units behind the inputs; {measured.throughput.what}. Weights "
        f"after an epoch in one order differed by {measured.throughput.difference:.1g} at most.",
        "speeds": markdown(SPEEDS, _speeds(measured)),
        "starts": markdown(STARTS, _starts(measured)),
        "promises": promised(result["targets"]),
    }
    return made | ({"gpu": markdown(GPU, _on_gpu(measured))} if measured.gpu else {})


def show(measured: Measured) -> Group:
    """The tables that people look at."""
    turns = measured.throughput
    none = "On a GPU: not measured, there is none here (torch.cuda.is_available() is False)"
    return Group(
        table(f"{measured.rows}, {turns.what}, {os.cpu_count()} cores", SPEEDS, _speeds(measured)),
        f"Largest difference of weights after an epoch in one order: {turns.difference:.1e}\n",
        table(f"{measured.workers} workers", STARTS, _starts(measured)),
        "",
        table(f"On {measured.device}", GPU, _on_gpu(measured)) if measured.gpu else none,
        "",
        promises(targets(measured)),
    )


SPEEDS = ("samples a second", "median", "least", "most")
STARTS = ("from handing out a trial to its first step, seconds", "median", "least", "most", "of")
GPU = ("samples a second", "here", "plain PyTorch", "ratio", "")


def _speeds(measured: Measured) -> list[tuple[str, ...]]:
    turns = measured.throughput
    return [
        (who, *(f"{turns.samples / seconds:,.0f}" for seconds in (statistics.median(of), max(of), min(of))))
        for who, of in (("here", turns.here), ("torchrun", turns.plain))
    ]


def _starts(measured: Measured) -> list[tuple[str, ...]]:
    return [
        (who, f"{statistics.median(of):.4f}", f"{min(of):.4f}", f"{max(of):.4f}", str(len(of)))
        for who, of in (("here", measured.starts), ("Ray Train", measured.documented))
    ]


def _on_gpu(measured: Measured) -> list[tuple[str, ...]]:
    return [
        (
            turns.what,
            f"{turns.samples / statistics.median(turns.here):,.0f}",
            f"{turns.samples / statistics.median(turns.plain):,.0f}",
            f"{statistics.median(turns.ratios):.3f}",
            _spread(turns),
        )
        for turns in measured.gpu
    ]


def main(
    workers: Annotated[int, typer.Option(min=1, help="Processes on each side.")] = 2,
    data_dir: Annotated[str | None, typer.Option(help="Folder that holds MNIST's files.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/torch_throughput"),
    quick: Annotated[bool, typer.Option(help="Few epochs and turns: to see that it works.")] = False,
) -> None:
    """Measure what training PyTorch through Warmband costs beside PyTorch itself."""
    console = Console(highlight=False)
    scale = QUICK if quick else Scale()
    dataset = load("mnist", data_dir=data_dir) if find("mnist", data_dir) else load("digits", repeat=40)
    small = load("digits")
    os.environ.update(ENVIRONMENT)
    os.environ.pop("RAY_ADDRESS", None)
    os.environ["OMP_NUM_THREADS"] = "1"  # As Ray and torchrun have it for processes of one core.
    with tempfile.TemporaryDirectory(prefix="warmband-torch-") as scratch:
        start_ray(workers)
        try:
            turns = throughput(dataset, workers, scale, scratch)
            console.print(f"under torchrun: {_spread(turns)}")
            mine = starts(small, workers, scale, scratch)
            documented = documented_starts(small, workers, scale, scratch)
        finally:
            ray.shutdown()
        there = torch.cuda.is_available()
        measured = Measured(
            workers=workers,
            rows=f"{dataset.title}, {len(dataset.train[1]):,} rows",
            throughput=turns,
            starts=mine,
            documented=documented,
            gpu=on_gpu(dataset, scale, scratch) if there else [],
            device=torch.cuda.get_device_name() if there else "",
        )
    console.print(show(measured))
    console.print(f"written to {write(out, result(measured))}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
