"""Updates a second of the parameter server, beside a plain Ray actor and what moving the bytes takes at least.

    python -m experiments.parameter_server [--turns 7] [--updates 300] [--out DIR]

An update is a gradient of the 784-128-64-10 network pushed to the servers, SGD with momentum there, and the parameters
pulled. Workers compute next to nothing: the gradient of the sum of all parameters, so that the network's own work,
which is the same whoever moves the gradients, does not hide the difference. Asynchronous workers make these updates as
fast as they can, 1 and 4 of them,

(a) on a gang that is up, through 1 and 2 servers, as training functions do;
(b) through a Ray actor as Ray's examples have it: it takes gradients as NumPy arrays, and returns the parameters so.

All take turns, and ratios are within a turn. Beside them, what the machine allows for the bytes of an update, there and
back: copying them in memory, and a call of a Ray actor that takes and returns an array of that size and does nothing.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import ray
import torch
import typer
from ray.train import ScalingConfig
from rich.console import Console, Group
from torch import nn

from experiments.baselines.training_loops import layers
from experiments.shared.benchmark import Target, markdown, promised, promises, table, targets_to_json, write
from experiments.workloads.repeated_trial import RepeatedTrial
from experiments.workloads.small_job import start_ray
from hpo.cli import errors_in_words
from trainers import ParameterServerTrainer, TrainContext
from trainers.channels import open_channels
from trainers.datasets import load

TRAIN = "experiments.parameter_server:train"
WIDTHS = (784, 128, 64, 10)
WORKERS, SERVERS = (1, 4), (1, 2)
LEARNING = {"lr": 1e-6, "momentum": 0.9}
ANSWER_SECONDS = 300.0
PLAIN = "plain Ray actor"


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Updates a second.

    Args:
        bytes: of the parameters, which is what goes either way.
        rates: by number of workers, then by "1 server", "2 servers" and `PLAIN`: one a turn.
        copies: the same if an update took but a copy in memory of what goes either way; one a turn.
        calls: if it took but an empty call of a Ray actor.
    """

    bytes: int
    rates: dict[int, dict[str, list[float]]]
    copies: list[float]
    calls: list[float]

    def ratio(self, workers: int, servers: str) -> float:
        """Updates a second of the servers over the plain actor's, median over turns."""
        of = self.rates[workers]
        return statistics.median(mine / theirs for mine, theirs in zip(of[servers], of[PLAIN], strict=True))


# ---- through the servers


def train(context: TrainContext) -> None:
    """What a worker of the gang runs: updates, as fast as it can."""
    model = context.prepare_model(layers(WIDTHS))
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING["lr"], momentum=LEARNING["momentum"])
    for _ in context.epochs():
        context.step(_loss(model), optimizer)
        context.synchronize()
        began = time.perf_counter()
        for _ in range(context.hyperparameters["updates"]):
            context.step(_loss(model), optimizer)
        context.synchronize()
        rate = context.world_size * context.hyperparameters["updates"] / (time.perf_counter() - began)
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        context.report({"updates:per_second": rate}, checkpoint=state)


def _loss(model: nn.Module) -> torch.Tensor:
    return torch.stack([parameter.sum() for parameter in model.parameters()]).sum()


# ---- through a plain actor


class PlainServer:
    """A parameter server as Ray's examples have it."""

    def __init__(self) -> None:
        torch.set_num_threads(1)
        self._model = layers(WIDTHS)
        self._optimizer = torch.optim.SGD(self._model.parameters(), lr=LEARNING["lr"], momentum=LEARNING["momentum"])

    def apply(self, gradients: list[Any]) -> list[Any]:
        """Makes one update; returns the parameters."""
        for parameter, gradient in zip(self._model.parameters(), gradients, strict=True):
            parameter.grad = torch.from_numpy(gradient.copy())
        self._optimizer.step()
        return [parameter.detach().numpy() for parameter in self._model.parameters()]


class PlainWorker:
    """One of its workers."""

    def __init__(self, server: Any) -> None:
        torch.set_num_threads(1)
        self._server = server
        self._model = layers(WIDTHS)

    def train(self, updates: int) -> None:
        """Makes so many updates."""
        for _ in range(updates):
            self._model.zero_grad()
            _loss(self._model).backward()
            gradients = [parameter.grad.numpy() for parameter in self._model.parameters() if parameter.grad is not None]
            with torch.no_grad():
                values = ray.get(self._server.apply.remote(gradients))
                for parameter, value in zip(self._model.parameters(), values, strict=True):
                    parameter.copy_(torch.from_numpy(value.copy()))


class Plain:
    """A plain server and its workers, which stay up."""

    def __init__(self, workers: int) -> None:
        actor: Any = ray.remote(num_cpus=0)
        self._server = actor(PlainServer).remote()
        self._workers = [actor(PlainWorker).remote(self._server) for _ in range(workers)]
        self.rate(1)

    def rate(self, updates: int) -> float:
        """Updates a second of all workers together, each of which makes so many."""
        began = time.perf_counter()
        ray.get([worker.train.remote(updates) for worker in self._workers], timeout=ANSWER_SECONDS)
        return len(self._workers) * updates / (time.perf_counter() - began)

    def close(self) -> None:
        """Ends them."""
        for actor in (*self._workers, self._server):
            ray.kill(actor)


# ---- the machine


class Echo:
    """An actor that does nothing."""

    def call(self, values: Any) -> Any:
        """Returns what it is given."""
        return values


def copies(size: int, times: int) -> float:
    """Updates a second, if one were a copy in memory of so many bytes there and back."""
    there, back = np.ones(size, np.uint8), np.ones(size, np.uint8)
    return _rate(lambda: np.copyto(back, there), 2 * times) / 2


def calls(size: int, times: int, echo: Any) -> float:
    """Updates a second, if one were a call of an actor that takes and returns so many bytes."""
    values = np.ones(size, np.uint8)
    return _rate(lambda: ray.get(echo.call.remote(values), timeout=ANSWER_SECONDS), times)


def _rate(work: Callable[[], object], times: int) -> float:
    work()
    began = time.perf_counter()
    for _ in range(times):
        work()
    return times / (time.perf_counter() - began)


# ---- by turns


def measure(turns: int, updates: int, scratch: str) -> Measured:
    """Measures everything, in turns."""
    size = sum(parameter.numel() for parameter in layers(WIDTHS).parameters()) * 4
    actor: Any = ray.remote(num_cpus=0)
    echo = actor(Echo).remote()
    rates = {workers: by_turns(workers, turns, updates, f"{scratch}/{workers}") for workers in WORKERS}
    copied = [copies(size, updates) for _ in range(turns)]
    called = [calls(size, updates, echo) for _ in range(turns)]
    ray.kill(echo)
    return Measured(bytes=size, rates=rates, copies=copied, calls=called)


def by_turns(workers: int, turns: int, updates: int, scratch: str) -> dict[str, list[float]]:
    """Updates a second of so many workers: through each number of servers, and a plain actor."""
    given = {"mode": "async", "updates": updates}
    trainer = ParameterServerTrainer(TRAIN, scaling=ScalingConfig(num_workers=workers), hyperparameters=given)
    rates: dict[str, list[float]] = {**{_servers(count): [] for count in SERVERS}, PLAIN: []}
    with trainer.gangs(f"workers-{workers}", open_channels({"train": load("digits").train})) as gangs:
        gang = RepeatedTrial(gangs, given, 1, scratch)
        gang.start(trainer.workers)
        for count in SERVERS:
            gang.train({"num_servers": count, "updates": 1})
        plain = Plain(workers)
        try:
            for turn in range(turns):
                for count in SERVERS if turn % 2 else reversed(SERVERS):
                    reports = gang.train({"num_servers": count}).segment.reports
                    rates[_servers(count)].append(reports[-1].metrics["updates:per_second"])
                rates[PLAIN].append(plain.rate(updates))
        finally:
            plain.close()
    return rates


def _servers(count: int) -> str:
    return f"{count} server{'s' if count > 1 else ''}"


# ---- what came out


def targets(measured: Measured) -> list[Target]:
    """The promises, and what was measured of each."""
    return [
        Target(
            promise=f"updates a second, {workers} worker{'s' if workers > 1 else ''}, over a plain Ray actor's",
            limit=3,
            measured=measured.ratio(workers, _servers(1)),
            unit="x",
            at_least=True,
            note=f"median of {len(of[PLAIN])} turns, 1 server; with 2: {measured.ratio(workers, _servers(2)):.1f}",
        )
        for workers, of in measured.rates.items()
    ]


def result(measured: Measured) -> dict[str, Any]:
    """Everything measured, for result.json."""
    return {
        "setting": {"widths": WIDTHS, "mode": "async", **LEARNING},
        **asdict(measured),
        "targets": targets_to_json(targets(measured)),
    }


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The table of docs/background/benchmarks.md."""
    rates = {int(workers): of for workers, of in result["rates"].items()}
    measured = Measured(bytes=result["bytes"], rates=rates, copies=result["copies"], calls=result["calls"])
    return {"updates": markdown(COLUMNS, _rows(measured)), "promises": promised(result["targets"])}


def show(measured: Measured) -> Group:
    """The tables that people look at."""
    title = f"Updates a second, {measured.bytes:,} bytes either way, {os.cpu_count()} cores"
    return Group(table(title, COLUMNS, _rows(measured)), "", promises(targets(measured)))


COLUMNS = ("", "updates a second", "least", "most", "MB a second", "times plain")


def _rows(measured: Measured) -> list[tuple[str, ...]]:
    """A row each way to move an update's bytes."""

    def row(how: str, found: Sequence[float], ratio: str = "") -> tuple[str, ...]:
        median = statistics.median(found)
        numbers = (median, min(found), max(found), 2 * measured.bytes * median / 1e6)
        return how, *(f"{number:,.0f}" for number in numbers), ratio

    rows = [
        row(
            f"{workers} worker{'s' if workers > 1 else ''}, {how}",
            found,
            "" if how == PLAIN else f"{measured.ratio(workers, how):.2f}",
        )
        for workers, of in measured.rates.items()
        for how, found in of.items()
    ]
    return [
        *rows,
        row("if it took but an empty Ray call", measured.calls),
        row("if it took but a copy in memory", measured.copies),
    ]


def main(
    turns: Annotated[int, typer.Option(min=1, help="How often each is measured.")] = 7,
    updates: Annotated[int, typer.Option(min=1, help="Of each worker in a turn.")] = 300,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/parameter_server"),
) -> None:
    """Measure the parameter server's updates a second."""
    console = Console(highlight=False)
    os.environ.pop("RAY_ADDRESS", None)
    os.environ["OMP_NUM_THREADS"] = "1"  # As Ray has it for workers of one CPU.
    with tempfile.TemporaryDirectory(prefix="warmband-servers-") as scratch:
        start_ray(2)
        try:
            measured = measure(turns, updates, scratch)
        finally:
            ray.shutdown()
    console.print(show(measured))
    console.print(f"written to {write(out, result(measured))}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
