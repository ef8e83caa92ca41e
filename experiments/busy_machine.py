"""Training with two threads on a busy machine: OpenMP threads that spin, and threads that sleep.

    python -m experiments.busy_machine [--repeats 3] [--threads 2] [--out DIR] [--quick]

Four works: rounds of XGBoost by hand on the generated bank marketing data, rounds of a whole job with `num_workers=0`,
and steps of a small and of a larger network with PyTorch. Each is done in three ways, in processes of their own that
take turns, on the machine as it is and beside as many busy processes as it has cores:

- spinning: GOMP_SPINCOUNT=300000, which is what libgomp does where nothing is set (its manual);
- here: nothing is set, and `hpo` is imported before the library;
- calmed: nothing is set, and the library is imported before `hpo`: see `trainers/process/openmp.py`.

Compared are medians over the repeats of the mean time of a round or step, since what a busy machine costs is in the few
that wait for a core; of a job, its training time by rounds.
"""

from __future__ import annotations

import io
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from experiments.shared.benchmark import Target, markdown, promised, promises, table, targets_to_json, write
from hpo.cli import errors_in_words
from trainers.process import POLICY, VARIABLE

UNITS = {"XGBoost": 100, "job in hand": 100, "small network": 3000, "larger network": 60}
"""Rounds or steps of each work."""

ARMS = ("spinning", "here", "calmed")
LIBRARIES = {"XGBoost": "xgboost", "job in hand": "xgboost", "small network": "torch", "larger network": "torch"}
COLUMNS = ("", "machine", *ARMS, "spinning / here")
SPINNING = "300000"
NETWORKS = {"small network": (64, 256), "larger network": (1024, 1024)}
"""Width of the hidden layers, and rows of a batch."""

WORK_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One work in one way: milliseconds a round or step, a repeat each."""

    work: str
    arm: str
    busy: bool
    milliseconds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.milliseconds)


def compare(units: Mapping[str, int], *, repeats: int, threads: int) -> list[Measured]:
    """Every work in every way, on the machine as it is and on a busy one."""
    found: list[Measured] = []
    for busy in (False, True):
        taken: dict[tuple[str, str], list[float]] = {(work, arm): [] for work in units for arm in ARMS}
        with busy_processes((os.cpu_count() or 1) if busy else 0):
            for repeat in range(repeats):
                for work, count in units.items():
                    # In turn, so that none profits from its place.
                    for arm in ARMS[repeat % 3 :] + ARMS[: repeat % 3]:
                        taken[work, arm].append(once(work, arm, count, threads))
        found += [Measured(work=work, arm=arm, busy=busy, milliseconds=values) for (work, arm), values in taken.items()]
    return found


BUSY = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(10_000))"
"""Never waits, and ends with the process that started it, however that ends."""


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Runs a block beside processes that never wait."""
    running = [subprocess.Popen([sys.executable, "-c", BUSY, str(os.getpid())]) for _ in range(count)]
    try:
        yield
    finally:
        for process in running:
            process.kill()
            process.wait()


def once(work: str, arm: str, units: int, threads: int) -> float:
    """One work in a process of its own; milliseconds a unit."""
    first = LIBRARIES[work] if arm == "calmed" else "hpo"
    script = f"import {first}, json; from experiments.busy_machine import WORKS; print(json.dumps(WORKS[{work!r}]"
    kept = {name: value for name, value in os.environ.items() if name not in (VARIABLE, POLICY)}
    done = subprocess.run(
        [sys.executable, "-c", f"{script}({units}, {threads})))"],
        env={**kept, **({VARIABLE: SPINNING} if arm == "spinning" else {})},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=WORK_SECONDS,
    )
    return 1000 * float(done.stdout.splitlines()[-1])


# ---- the works, in seconds a unit


def boosting(rounds: int, threads: int) -> float:
    """XGBoost by hand."""
    import numpy as np
    import pandas
    import xgboost

    from trainers.datasets import load
    from trainers.process import calm_loaded

    calm_loaded()  # As every job does.
    train = pandas.DataFrame(load("bank-marketing-synthetic").train)
    features, labels = train.iloc[:, 1:].to_numpy(np.float32), train.iloc[:, 0].to_numpy(np.float32)
    matrix = xgboost.QuantileDMatrix(features, labels, nthread=threads)
    booster = xgboost.Booster({"objective": "binary:logistic", "nthread": threads}, [matrix])
    iterations = iter(range(rounds + 1))
    return mean_of(rounds, lambda: booster.update(matrix, next(iterations)))


def job(rounds: int, threads: int) -> float:
    """A job of one trial and its un-tuned run, as a user runs it."""
    from ray.train import ScalingConfig

    from hpo import HyperparameterTuner, IntegerParameter
    from trainers import XGBoostTrainer
    from trainers.datasets import load

    data = load("bank-marketing-synthetic")
    scaling = ScalingConfig(num_workers=0, resources_per_worker={"CPU": threads})
    static = {"objective": "binary:logistic", "eval_metric": "auc", "num_round": rounds}
    with tempfile.TemporaryDirectory(prefix="warmband-busy-machine-") as folder:
        tuner = HyperparameterTuner(
            XGBoostTrainer(scaling=scaling, hyperparameters=static),
            "validation:auc",
            {"max_depth": IntegerParameter(6, 7)},
            strategy="Random",
            max_jobs=1,
            random_seed=1,
            storage_path=folder,
            store=f"sqlite:///{folder}/store.db",
            console=Console(file=io.StringIO()),
        )
        tuner.fit({"train": data.train, "validation": data.validation}, job_name="job")
        summary = tuner.describe()["Summary"]
    trained = summary["resource_used"] + summary["untuned"]["resource"]
    return float(summary["worker_seconds"]["training"] / trained)


def network(name: str) -> Callable[[int, int], float]:
    """Steps of a network of three layers on rows of 59 features."""
    width, rows = NETWORKS[name]

    def steps(count: int, threads: int) -> float:
        import torch
        from torch import nn

        from trainers.process import calm_loaded

        calm_loaded()  # As every job does.
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(59, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        features, labels = torch.randn(rows, 59), torch.randn(rows, 1)

        def step() -> None:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(features), labels).backward()
            optimizer.step()

        return mean_of(count, step)

    return steps


def mean_of(count: int, work: Callable[[], object]) -> float:
    """The mean seconds of so many calls, after one that does not count."""
    work()
    began = time.perf_counter()
    for _ in range(count):
        work()
    return (time.perf_counter() - began) / count


WORKS: dict[str, Callable[[int, int], float]] = {
    "XGBoost": boosting,
    "job in hand": job,
    **{name: network(name) for name in NETWORKS},
}


# ---- what came out


def ratio(measured: list[Measured], work: str, arm: str, *, busy: bool) -> float:
    """How many times as long a work takes with threads that spin as in one of the other ways."""
    medians = {found.arm: found.median for found in measured if (found.work, found.busy) == (work, busy)}
    return medians["spinning"] / medians[arm]


def targets(measured: list[Measured]) -> list[Target]:
    """The promises, and what was measured of each."""
    return [
        Target(
            promise=f"{work} on a busy machine: threads that spin take so many times as long",
            limit=2.0,
            measured=ratio(measured, work, arm, busy=True),
            unit="x",
            at_least=True,
            note=arm,
        )
        for work in ("XGBoost", "job in hand")
        for arm in ARMS[1:]
    ]


def rows(measured: list[Measured]) -> list[tuple[str, ...]]:
    """A line for each work, on the machine as it is and busy."""
    lines = []
    for busy in (False, True):
        for work in dict.fromkeys(found.work for found in measured):
            medians = {found.arm: found.median for found in measured if (found.work, found.busy) == (work, busy)}
            figures = [f"{medians[arm]:.2f}" for arm in ARMS]
            lines.append(
                (work, "busy" if busy else "as it is", *figures, f"{ratio(measured, work, 'here', busy=busy):.2f}")
            )
    return lines


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/background/benchmarks.md."""
    of = ("work", "arm", "busy", "milliseconds")
    measured = [Measured(**{name: found[name] for name in of}) for found in result["measured"]]
    return {"works": markdown(COLUMNS, rows(measured)), "promises": promised(result["targets"])}


def main(
    repeats: Annotated[int, typer.Option(min=1, help="Processes for each work, way and state.")] = 3,
    threads: Annotated[int, typer.Option(min=2, help="Threads of each work.")] = 2,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/busy_machine"),
    quick: Annotated[bool, typer.Option(help="A few rounds, once each: to see that it works.")] = False,
) -> None:
    """Measure XGBoost, a job in hand and PyTorch, on a quiet machine and a busy one, by how threads wait."""
    console = Console(highlight=False)
    units = dict.fromkeys(UNITS, 3) if quick else UNITS
    load_before = os.getloadavg()
    measured = compare(units, repeats=1 if quick else repeats, threads=threads)
    kept = targets(measured)
    console.print(
        table(f"Milliseconds a round or step, {threads} threads", COLUMNS, rows(measured)), "", promises(kept)
    )
    result: dict[str, Any] = {
        "setting": {"repeats": 1 if quick else repeats, "threads": threads, "units": units},
        "load_before": load_before,
        "measured": [{**asdict(found), "median": found.median} for found in measured],
        "targets": targets_to_json(kept),
    }
    console.print(f"written to {write(out, result)}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
