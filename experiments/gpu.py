"""Training on GPUs: losses of the CPU, the time of a step, warm starts, memory between trials, recovery from errors.

    python -m experiments.gpu [--out DIR] [--quick]

Takes whatever GPUs there are, one a worker, at most ten minutes. On a machine without one, each part that can runs on
CPUs, two workers over gloo; the others say "not run: no GPU" in result.json.

*Losses*: a trial in float32 on a gang, against the same global batches on one CPU in this process.
*Step*: a trial in this process against the same loop in plain PyTorch on the same device, by turns.
*Host rows*: the same with rows that are kept out of the GPU's memory, and copied batch by batch, against rows in it.
*Starts*: from asking for a gang until its first training step, against handing a trial to it when it is up.
*Memory*: bytes that a trial finds held, over many trials of different sizes, every fifth of which fails.
*Recovery*: trials for want of memory, with an error of one worker alone, and with an assertion on the GPU; each fails
once, and the next trial on that gang has the loss that it had before.
*XGBoost*: its metric on the gang's GPUs against the CPU's.
"""

from __future__ import annotations

import logging
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import patch

import ray
import torch
import typer
from rich.console import Console
from torch.optim import SGD

from experiments.baselines import training_loops
from experiments.baselines.device_trials import TRAIN
from experiments.shared.benchmark import Target, markdown, promised, promises, table, targets_to_json, write
from experiments.workloads.answering_gang import AnsweringGang
from experiments.workloads.repeated_trial import RepeatedTrial
from hpo.cli import errors_in_words
from trainers import ScalingConfig, TorchTrainer, XGBoostTrainer
from trainers.channels import open_channels
from trainers.datasets import Dataset, load
from trainers.gangs import Segment, Served

NOT_RUN = "not run: no GPU"
MOST_WORKERS, BATCH, LOSSES = 4, 200, 1e-4
"""Workers at most, rows of an update, and how far a loss in float32 may be from the CPU's, as a part of it."""
SMALL, LARGE = (128, 64), (2048, 2048)
"""Layers behind the inputs, of trials that are many and of those whose steps are timed on a GPU."""


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How large each part is: epochs, turns of each side, trials that may leave memory behind, repeated rows."""

    epochs: int = 5
    turns: int = 11
    trials: int = 50
    repeat: int = 8


QUICK = Scale(epochs=2, turns=2, trials=6, repeat=2)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the parts run: on so many GPUs, or on CPUs, where there are none.

    Args:
        gpus: names of the GPUs.
    """

    gpus: tuple[str, ...]

    @classmethod
    def here(cls) -> Place:
        """The GPUs of this machine that are free to be used."""
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        return cls(gpus=tuple(torch.cuda.get_device_name(number) for number in range(count)))

    @property
    def workers(self) -> int:
        """Of a gang."""
        return min(len(self.gpus), MOST_WORKERS) or 2

    @property
    def words(self) -> str:
        """What the gang's workers are, and how they are joined."""
        kind, backend = (self.gpus[0], "NCCL") if self.gpus else ("CPU", "gloo")
        return f"{self.workers} x {kind}, {backend}"

    def scaling(self, workers: int) -> ScalingConfig:
        """Of so many workers; 0 is this process."""
        return ScalingConfig(num_workers=workers, use_gpu=bool(self.gpus))


def trial_of(dataset: Dataset, hidden: Sequence[int] = SMALL) -> dict[str, Any]:
    """A trial's hyperparameters; its last batches have fewer rows."""
    widths = [dataset.train[0].shape[1], *hidden, 10]
    return {"widths": widths, "lr": 0.05, "global_batch_size": BATCH}


def losses(segment: Segment | None) -> list[float]:
    """Of each epoch."""
    assert segment is not None, "a trial without an end of its own gives a segment"
    return [report.metrics["train:loss"] for report in segment.reports]


# ---- on a gang


def on_a_gang(dataset: Dataset, place: Place, scale: Scale, scratch: str) -> dict[str, dict[str, Any]]:
    """All parts that one gang serves: losses, starts, memory and recovery, in this order."""
    trial = trial_of(dataset)
    trainer = TorchTrainer(TRAIN, scaling=place.scaling(place.workers), hyperparameters=trial)
    expected = on_one_cpu(dataset, trial, scale, scratch)
    with trainer.gangs("gpu", open_channels({"train": dataset.train})) as gangs:
        gang = AnsweringGang(gangs, trial, f"{scratch}/gang")
        asked = time.time()
        gang.start(place.workers)
        first = gang.serve(scale.epochs)
        found = losses(first.segment)
        assert first.segment is not None
        worker = first.segment.reports[0].metrics
        return {
            "losses": {
                "expected": expected,
                "found": found,
                "difference": max(abs(here / there - 1) for here, there in zip(found, expected, strict=True)),
            },
            "worker": {name: worker[name] for name in ("threads", "gpus_seen", "told_workers")},
            "starts": {"cold": [first.segment.first_step_at - asked], "warm": warm_starts(gang, scale)},
            "memory": memory(gang, trial, scale),
            "out_of_memory": recovery(gang, "memory", expected, scale),
            "peer": recovery(gang, "peer", expected, scale),
            # The last one: it ends the workers.
            "assertion": recovery(gang, "assertion", expected, scale) if place.gpus else {"not_run": NOT_RUN},
        }


def on_one_cpu(dataset: Dataset, trial: Mapping[str, Any], scale: Scale, scratch: str) -> list[float]:
    """The losses of a trial on the CPU in this process: global batches are of the same rows there."""
    trainer = TorchTrainer(TRAIN, scaling=ScalingConfig(num_workers=0), hyperparameters=trial)
    with trainer.gangs("cpu", open_channels({"train": dataset.train})) as gangs:
        gang = AnsweringGang(gangs, trial, f"{scratch}/cpu")
        gang.start(1)
        return losses(gang.serve(scale.epochs).segment)


def warm_starts(gang: AnsweringGang, scale: Scale) -> list[float]:
    """Seconds from handing out a trial until its first step."""
    found = []
    for _ in range(scale.turns):
        began = time.time()
        segment = gang.serve().segment
        assert segment is not None
        found.append(segment.first_step_at - began)
    return found


def memory(gang: AnsweringGang, trial: Mapping[str, Any], scale: Scale) -> dict[str, Any]:
    """Bytes that each trial found held; layers grow and shrink, and every fifth trial fails."""
    held = []
    for number in range(scale.trials):
        if number % 5 == 4:
            gang.serve(widths=[trial["widths"][0], 512, 10], ends="error")
            continue
        segment = gang.serve(widths=[trial["widths"][0], 64 * (1 + number % 4), 10]).segment
        assert segment is not None
        held.append(segment.reports[0].metrics["held_bytes"])
    # What the first trials leave, workspaces of libraries say, is made once.
    return {"held_bytes": held, "trials": scale.trials, "grown_bytes": held[-1] - held[min(3, len(held) - 2)]}


def recovery(gang: AnsweringGang, ends: str, expected: Sequence[float], scale: Scale) -> dict[str, Any]:
    """A trial that ends so, and the next one: whether each was as it has to be, and seconds until both had ended."""
    before, lost, began = gang.up, gang.lost, time.perf_counter()
    failed = gang.serve(ends=ends)
    told = time.perf_counter() - began
    after: Served = gang.serve(scale.epochs)
    assert before is not None
    assert gang.up is not None
    found = losses(after.segment) if after.segment else [math.nan]
    return {
        "error": failed.error,
        "seconds_to_the_error": told,
        "seconds_to_the_next_end": time.perf_counter() - began,
        "workers_lost": gang.lost - lost,
        "same_workers": gang.up.pids == before.pids,
        "difference": max(abs(here / there - 1) for here, there in zip(found, expected, strict=False)),
    }


# ---- in this process


def step(dataset: Dataset, place: Place, scale: Scale, scratch: str) -> dict[str, Any]:
    """Seconds of a trial here and of plain PyTorch's loop, in turns."""
    trial = {**trial_of(dataset, LARGE if place.gpus else (512, 512)), "momentum": 0.9, "shuffle": True}
    device = torch.device("cuda" if place.gpus else "cpu")
    features, labels = (torch.from_numpy(part).to(device) for part in dataset.train)
    labels = labels.long()

    def by_hand() -> None:
        model = training_loops.layers(trial["widths"]).to(device)
        optimizer = SGD(model.parameters(), lr=trial["lr"], momentum=0.9)
        training_loops.plain(model, optimizer, features, labels, batch=BATCH, epochs=scale.epochs)

    with _repeated(dataset, place, trial, scale, f"{scratch}/step") as gang:
        here, there = in_turns(lambda: gang.train().segment.training_seconds, lambda: _timed(by_hand, device), scale)
    return {"widths": trial["widths"], "here": here, "there": there}


def host_rows(dataset: Dataset, place: Place, scale: Scale, scratch: str) -> dict[str, Any]:
    """Seconds of a trial whose rows stay in the host's memory, and of the same with rows on the GPU, in turns."""
    if not place.gpus:
        return {"not_run": NOT_RUN}
    trial = {**trial_of(dataset, LARGE), "momentum": 0.9, "shuffle": True}
    with ExitStack() as stack:
        with patch("trainers.pytorch.data.residence.RESIDENT", 0.0):  # Rows that would fit are kept out.
            away = stack.enter_context(_repeated(dataset, place, trial, scale, f"{scratch}/away"))
        near = stack.enter_context(_repeated(dataset, place, trial, scale, f"{scratch}/near"))
        equal = losses(away.train().segment) == losses(near.train().segment)
        here, there = in_turns(lambda: _trained(away), lambda: _trained(near), scale)
    return {"here": here, "there": there, "equal": equal}


@contextmanager
def _repeated(
    dataset: Dataset, place: Place, trial: Mapping[str, Any], scale: Scale, folder: str
) -> Iterator[RepeatedTrial]:
    """A trial of the loop that plain PyTorch has too, in this process, trained once."""
    trainer = TorchTrainer(training_loops.TRAIN, scaling=place.scaling(0), hyperparameters=trial)
    with trainer.gangs("alone", open_channels({"train": dataset.train})) as gangs:
        gang = RepeatedTrial(gangs, trial, scale.epochs, folder)
        gang.start()
        gang.train()
        yield gang


def _trained(gang: RepeatedTrial) -> float:
    return gang.train().segment.training_seconds


def _timed(work: Callable[[], None], device: torch.device) -> float:
    began = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - began


def in_turns(here: Callable[[], float], there: Callable[[], float], scale: Scale) -> tuple[list[float], list[float]]:
    """Seconds of each side, who takes turns at being first; a first turn of each is not counted."""
    here(), there()
    found: tuple[list[float], list[float]] = [], []
    for turn in range(scale.turns):
        for side in (0, 1) if turn % 2 else (1, 0):
            found[side].append((here, there)[side]())
    return found


def xgboost(dataset: Dataset, place: Place, scratch: str) -> dict[str, Any]:
    """The metric of XGBoost on the gang's GPUs, and on CPUs."""
    if not place.gpus:
        return {"not_run": NOT_RUN}
    static = {"objective": "multi:softprob", "num_class": 10, "eval_metric": "mlogloss", "num_round": 10}
    found = {}
    for where, use_gpu in (("here", True), ("there", False)):
        trainer = XGBoostTrainer(
            scaling=ScalingConfig(num_workers=place.workers, use_gpu=use_gpu), hyperparameters=static
        )
        channels = {"train": dataset.train, "validation": dataset.validation}
        found[where] = trainer.fit(channels, storage_path=f"{scratch}/xgboost-{where}").metrics["validation:mlogloss"]
    return {**found, "difference": abs(found["here"] / found["there"] - 1)}


# ---- what came out


def ratio(part: Mapping[str, Any]) -> float:
    """The median over turns of the other side's seconds by those here."""
    return float(statistics.median(there / here for here, there in zip(part["here"], part["there"], strict=True)))


RECOVERIES = {
    "out_of_memory": ("want of memory", 0),
    "peer": ("an error of one worker alone", 0),
    "assertion": ("an assertion on the GPU", 1),
}
"""What a gang recovers from, in words, and how often it loses its workers by it."""


def targets(parts: Mapping[str, Mapping[str, Any]]) -> list[Target]:
    """The promises, of the parts that ran."""
    kept = []

    def promise(name: str, what: str, limit: float, unit: str, measured: Callable[[Any], float]) -> None:
        part = parts[name]
        if "not_run" not in part:
            at_least = unit == "times"
            figure, note = measured(part), part["ran_on"]
            kept.append(Target(promise=what, limit=limit, measured=figure, unit=unit, note=note, at_least=at_least))

    promise("losses", "losses, part by which they differ from one CPU's", LOSSES, "", lambda part: part["difference"])
    promise("step", "samples a second, over plain PyTorch's", 0.98, "times", ratio)
    promise("host_rows", "samples a second of rows in the host's memory, over the GPU's", 0.8, "times", ratio)
    promise("starts", "first step on a warm gang, sooner than on a cold one", 20, "times", sooner)
    promise("memory", "bytes that trials left behind", 0, "bytes", lambda part: part["grown_bytes"])
    for name, (words, lost) in RECOVERIES.items():
        promise(name, f"recoveries from {words} that failed", 0, "", partial(failures, lost=lost))
    promise(
        "xgboost", "XGBoost's metric, part by which it differs from CPUs'", 0.01, "", lambda part: part["difference"]
    )
    return kept


def sooner(part: Mapping[str, Any]) -> float:
    """How many times sooner a warm gang takes its first step than a cold one."""
    return float(statistics.median(part["cold"]) / statistics.median(part["warm"]))


def failures(part: Mapping[str, Any], *, lost: int) -> float:
    """Whether a recovery failed: no error was told, workers were lost or kept, or the next trial was another."""
    return float(not part["error"] or part["workers_lost"] != lost or not part["difference"] <= LOSSES)


COLUMNS = ("part", "ran on", "measured")


def rows(parts: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """A line for each part: where it ran, and its figures; or that it did not run."""
    return [(name, part.get("not_run") or part["ran_on"], _figures(name, part)) for name, part in parts.items()]


def _figures(name: str, part: Mapping[str, Any]) -> str:
    if "not_run" in part:
        return ""
    if name in RECOVERIES:
        seconds = (
            f"told after {part['seconds_to_the_error']:.2f} s, next over after {part['seconds_to_the_next_end']:.2f}"
        )
        return f"{seconds} s, workers lost {part['workers_lost']}"
    match name:
        case "step" | "host_rows":
            here, there = (statistics.median(part[side]) for side in ("here", "there"))
            return f"{ratio(part):.3f} times, medians {here:.3f} and {there:.3f} s"
        case "starts":
            return f"cold {part['cold'][0]:.2f} s, warm {statistics.median(part['warm']):.4f} s"
        case "memory":
            return f"{part['held_bytes'][-1]:,.0f} bytes after {part['trials']} trials, {part['grown_bytes']:,.0f} more"
        case "worker":
            return ", ".join(f"{what} {value:g}" for what, value in part.items() if what != "ran_on")
    return f"difference {part['difference']:.1e}"


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/background/benchmarks.md."""
    return {"parts": markdown(COLUMNS, rows(result["parts"])), "promises": promised(result["targets"])}


def measured(dataset: Dataset, place: Place, scale: Scale, scratch: str) -> dict[str, dict[str, Any]]:
    """All parts by name, each with where it ran or that it did not."""
    alone = place.gpus[0] if place.gpus else "CPU, this process"
    ray.init(address="local", num_cpus=16, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    try:
        parts = on_a_gang(dataset, place, scale, scratch)
        parts["xgboost"] = xgboost(dataset, place, scratch)
    finally:
        ray.shutdown()
    told = {name: {"ran_on": place.words, **part} for name, part in parts.items()}
    for name, part in (("step", step), ("host_rows", host_rows)):
        told[name] = {"ran_on": alone, **part(dataset, place, scale, scratch)}
    return told


def main(
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/gpu"),
    quick: Annotated[bool, typer.Option("--quick", help="Few epochs, turns and trials: to see that it works.")] = False,
) -> None:
    """Check training on this machine's GPUs, or as much of it as CPUs can show."""
    console, place, scale = Console(highlight=False), Place.here(), QUICK if quick else Scale()
    os.environ.pop("RAY_ADDRESS", None)
    with tempfile.TemporaryDirectory(prefix="warmband-gpu-") as scratch:
        parts = measured(load("digits", repeat=scale.repeat), place, scale, scratch)
    kept = targets(parts)
    console.print(table(place.words, COLUMNS, rows(parts)), "", promises(kept))
    result = {"gpus": list(place.gpus), "parts": parts, "targets": targets_to_json(kept)}
    console.print(f"written to {write(out, result)}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
