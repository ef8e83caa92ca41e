"""PyTorch on gangs beside PyTorch itself: samples a second under torchrun, starting a trial with Ray Train, a GPU.

    python -m experiments.torch_throughput [--workers 2] [--data-dir DIR] [--out DIR] [--quick]

All parts train a small fully connected network by SGD with momentum (`experiments.baselines.training_loops` has the
loop twice, by hand and as a training function); the first on MNIST where it is found, otherwise on scikit-learn's
digits, many times over. The first part also trains two networks of `experiments.networks` by AdamW, each in replicas
and in shards: a convolutional one on some of these images, and a GPT of 10.9 million parameters on some of the source
of Python's standard library.

*Throughput*: one trial on a gang that is up, from handing out the assignment until its result is there, its checkpoint
written; against the same loop in plain PyTorch on as many processes of `torch.distributed.run`, with
`DistributedDataParallel`, or `fully_shard` of each block, and gloo, from telling them to train until all have answered,
the checkpoint written. On both sides rows are read before and lie in memory as tensors, in another order in each epoch;
processes have one thread each and the same niceness. The two take turns, and the promise is on the median of the ratios
within a turn. That both did the same work shows in the weights after an epoch without shuffling, which have to agree.

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
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import ray
import torch
import typer
from ray.train import Checkpoint, RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer as RayTorchTrainer, prepare_model
from rich.console import Console, Group, RenderableType

from experiments.baselines.pytorch.by_turns import SEED, Case, Turns, by_turns, on_gpu
from experiments.baselines.pytorch.torchrun import REPLICAS, SHARDED
from experiments.baselines.ray_as_documented import ENVIRONMENT
from experiments.baselines.training_loops import BATCH, HIDDEN, LEARNING, TRAIN, layers, plain
from experiments.shared.benchmark import Target, markdown, promised, promises, table, targets_to_json, write
from experiments.workloads.repeated_trial import RepeatedTrial
from experiments.workloads.small_job import start_ray
from hpo.cli import errors_in_words
from trainers import Channel, TorchTrainer
from trainers.channels import open_channels
from trainers.datasets import Dataset, find, load

ADAMW = {"lr": 0.001, "weight_decay": 0.01, "shuffle": True}


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How large each part is.

    Args:
        epochs: of the small network's trial.
        turns: of its, on each side.
        network_turns: of each of the other networks.
        images: rows that the convolutional network is trained on.
        texts: that the GPT is.
        size: of the GPT.
        starts: of ours.
        documented_starts: of Ray Train's.
    """

    epochs: int = 5
    turns: int = 11
    network_turns: int = 7
    images: int = 12_000
    texts: int = 64
    size: str = "base"
    starts: int = 50
    documented_starts: int = 5


QUICK = Scale(epochs=1, turns=3, network_turns=2, images=400, texts=32, size="tiny", starts=5, documented_starts=1)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Everything: throughput under torchrun, seconds of each start, and loops on a GPU by network and precision.

    Args:
        workers: processes on each side, GPUs excepted.
        rows: the dataset that was trained on.
        throughput: the first part's small network.
        networks: its others, each in replicas and in shards.
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
    networks: list[Turns] = field(default_factory=list)
    gpu: list[Turns] = field(default_factory=list)
    device: str = ""


# ---- throughput


def small(dataset: Dataset, scale: Scale) -> Case:
    """The fully connected network."""
    train: Any = dataset.train
    trial = {**LEARNING, "widths": [train[0].shape[1], *HIDDEN], "per_worker_batch_size": BATCH}
    return Case(name="small", hyperparameters=trial, rows=train, epochs=scale.epochs, turns=scale.turns)


def networks(dataset: Dataset, scale: Scale) -> list[Case]:
    """The convolutional network on some of the images, and the GPT on some of the text, each in replicas and shards."""
    text: Any = load("python-stdlib").train
    train: Any = dataset.train
    images = {"network": "convolutional", "columns": train[0].shape[1], "per_worker_batch_size": 50}
    tokens = {"network": "gpt", "size": scale.size, "columns": text[0].shape[1], "per_worker_batch_size": 4}
    return [
        Case(
            name=f"{name}, {wrapper}",
            hyperparameters={**ADAMW, **trial},
            rows=(features[:rows], labels[:rows]),
            epochs=1,
            turns=scale.network_turns,
            wrapper=wrapper,
        )
        for name, trial, (features, labels), rows in (
            ("convolutional network", images, train, scale.images),
            ("GPT", tokens, text, scale.texts),
        )
        for wrapper in (REPLICAS, SHARDED)
    ]


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


def documented_starts(dataset: Dataset, workers: int, count: int, scratch: str) -> list[float]:
    """Seconds from calling `fit()` to the first step, of each of `count` starts.

    Args:
        dataset: whose training rows each worker reads its share of.
        workers: of each run.
        count: how many.
        scratch: folder for what Ray Train keeps.
    """
    placed = Channel.of(dataset.train, name="train").place(workers)
    found = []
    for number in range(count):
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
        *(
            Target(
                promise=f"the same of the {of.name}",
                limit=0.98,
                measured=statistics.median(of.ratios),
                unit="times",
                at_least=True,
                note=_spread(of),
            )
            for of in measured.networks
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
    """Return the tables of docs/background/benchmarks.md: what was trained, speeds, seconds of starts, and a GPU's."""
    several = {part: [Turns(**of) for of in result.get(part, ())] for part in ("networks", "gpu")}
    turns = {**result, "throughput": Turns(**result["throughput"]), **several}
    measured = Measured(**{name: turns[name] for name in Measured.__dataclass_fields__})
    hidden = "-".join(map(str, result["setting"]["hidden"]))
    made = {
        "trained": f"{measured.rows}; layers of {hidden} units behind the inputs; {measured.throughput.what}. Weights "
        f"after an epoch in one order differed by {measured.throughput.difference:.1g} at most."
        + (f" Processor seconds of a turn: {busy}." if (busy := _processor(measured.throughput)) else ""),
        "speeds": markdown(SPEEDS, _speeds(measured)),
        "starts": markdown(STARTS, _starts(measured)),
        "promises": promised(result["targets"]),
    }
    made |= {"networks": markdown(NETWORKS, _networks(measured))} if measured.networks else {}
    return made | ({"gpu": markdown(GPU, _on_gpu(measured))} if measured.gpu else {})


def show(measured: Measured) -> Group:
    """The tables that people look at."""
    turns = measured.throughput
    none = "On a GPU: not measured, there is none here (torch.cuda.is_available() is False)"
    large: list[RenderableType] = []
    if measured.networks:
        large = [table("Networks that people train", NETWORKS, _networks(measured)), ""]
    return Group(
        table(f"{measured.rows}, {turns.what}, {os.cpu_count()} cores", SPEEDS, _speeds(measured)),
        f"Largest difference of weights after an epoch in one order: {turns.difference:.1e}\n",
        *large,
        table(f"{measured.workers} workers", STARTS, _starts(measured)),
        "",
        table(f"On {measured.device}", GPU, _on_gpu(measured)) if measured.gpu else none,
        "",
        promises(targets(measured)),
    )


SPEEDS = ("samples a second", "median", "least", "most")
STARTS = ("from handing out a trial to its first step, seconds", "median", "least", "most", "of")
NETWORKS = (
    "samples a second",
    "here",
    "torchrun",
    "ratio",
    "",
    "weights differ by at most",
    "processor seconds of a turn",
)
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


def _networks(measured: Measured) -> list[tuple[str, ...]]:
    """What was trained for each, its speeds, and how far both sides' weights are apart after an epoch in one order."""
    return [
        (f"{turns.name}: {turns.what}", *_compared(turns), f"{turns.difference:.1g}", _processor(turns))
        for turns in measured.networks
    ]


def _processor(turns: Turns) -> str:
    return "{:.2f} here, {:.2f} under torchrun".format(*turns.processor) if turns.processor else ""


def _on_gpu(measured: Measured) -> list[tuple[str, ...]]:
    return [(turns.what, *_compared(turns)) for turns in measured.gpu]


def _compared(turns: Turns) -> tuple[str, ...]:
    speeds = [turns.samples / statistics.median(seconds) for seconds in (turns.here, turns.plain)]
    return (
        *(f"{speed:,.0f}" if speed >= 100 else f"{speed:.2f}" for speed in speeds),
        f"{statistics.median(turns.ratios):.3f}",
        _spread(turns),
    )


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
    digits = load("digits")
    os.environ.update(ENVIRONMENT)
    os.environ.pop("RAY_ADDRESS", None)
    os.environ["OMP_NUM_THREADS"] = "1"  # As Ray and torchrun have it for processes of one core.
    with tempfile.TemporaryDirectory(prefix="warmband-torch-") as scratch:
        start_ray(workers)
        try:
            turns = by_turns(small(dataset, scale), workers, scratch)
            console.print(f"under torchrun: {_spread(turns)}")
            others = []
            for case in networks(dataset, scale):
                others.append(by_turns(case, workers, scratch))
                console.print(f"{case.name}: {_spread(others[-1])}")
            mine = starts(digits, workers, scale, scratch)
            documented = documented_starts(digits, workers, scale.documented_starts, scratch)
        finally:
            ray.shutdown()
        there, rows = torch.cuda.is_available(), small(dataset, scale).rows
        measured = Measured(
            workers=workers,
            rows=f"{dataset.title}, {len(dataset.train[1]):,} rows",
            throughput=turns,
            networks=others,
            starts=mine,
            documented=documented,
            gpu=on_gpu(rows, scale.epochs, scale.turns, scratch) if there else [],
            device=torch.cuda.get_device_name() if there else "",
        )
    console.print(show(measured))
    console.print(f"written to {write(out, result(measured))}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
