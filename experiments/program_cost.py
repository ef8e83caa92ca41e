"""What it costs that a program is a trial: against its bare launcher, until its first step, and for what it prints.

    python -m experiments.program_cost [--repeats 5] [--seconds 10] [--out DIR] [--quick]

*Throughput*: a program of `experiments/programs` from handing it to a gang of two that is up until its result is there,
its checkpoint kept; against the same program under its own launcher, as its documentation starts it, on as many
processes with as many threads, from starting it until it has ended. The two take turns; a program trains so many units
that it lasts some `--seconds`. Frameworks that are not installed are left out.

*First step*: a fine-tune with Transformers on two workers, from handing a trial to a gang that is up until its first
training step has ended, twice the same program: started for each trial, and kept loaded. The first trial of the gang
that keeps it is not counted.

*Output*: a program of one process that prints 10,000 lines a second, each of which is read for metrics; its own seconds
for the same work on a gang, and with its output in a file, in many short turns, since a machine's speed differs by more
than what is looked for; on both sides Python writes each line at once, as containers have it, since nobody could follow
it otherwise.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any

import ray
import typer
from rich.console import Console, Group

import experiments.programs
from experiments.programs.kept.talking import work
from experiments.shared.benchmark import Target, markdown, promised, promises, table, targets_to_json, write
from experiments.workloads.repeated_trial import RepeatedTrial
from hpo.cli import errors_in_words
from trainers import ScalingConfig, ScriptTrainer, WarmbandError

FOLDER = Path(experiments.programs.__file__).parent
KEPT = FOLDER / "kept"
REPEATS, SECONDS, LINES_A_SECOND = 5, 10.0, 10_000
SHORT_TURNS = 5
"""Turns of a program that prints to one of the others, each by so much shorter."""
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
FIRST_STEP = {"Name": "first_step", "Regex": r"first step at (\S+)"}
COLUMNS = ("program", "launcher", "on a gang", "bare", "bare / gang")


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program of `experiments/programs`, and how it is started.

    Args:
        package: what has to be installed for it.
        launcher: of `ScriptTrainer`.
        bare: the words by which its documentation starts it on two processes, in front of its file.
        length: the hyperparameter of its units.
        metric: and its regular expression.
        static: further hyperparameters.
        workers: of the gang.
    """

    package: str
    launcher: str
    bare: tuple[str, ...]
    length: str = "epochs"
    metric: tuple[str, str] = ("accuracy", r"epoch=(?P<step>\d+) accuracy=(?P<value>\S+)")
    static: Mapping[str, Any] = field(default_factory=dict)
    workers: int = 2


PROGRAMS = {
    "pytorch_ddp": Program(package="torch", launcher="torchrun", bare=TORCHRUN, static={"hidden": 1536}),
    "lightning_ddp": Program(package="lightning", launcher="torchrun", bare=TORCHRUN, static={"hidden": 1536}),
    "transformers_trainer": Program(
        package="transformers",
        launcher="torchrun",
        bare=TORCHRUN,
        length="num_train_epochs",
        metric=("eval_loss", r"epoch=(?P<step>\d+) eval_loss=(?P<value>\S+)"),
    ),
    "mpi_averaging": Program(
        package="mpi4py",
        launcher="mpirun",
        bare=("mpirun", "-np", "2", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"),
        metric=("loss", r"epoch=(?P<step>\d+) loss=(?P<value>\S+)"),
        static={"steps": 40_000},
    ),
    "sklearn_partial_fit": Program(package="sklearn", launcher="python", bare=(), static={"passes": 200}, workers=1),
}


@dataclass(frozen=True, kw_only=True)
class Turns:
    """Seconds of one thing done in two ways, in turns.

    Args:
        launcher: of the program.
        here: on a gang.
        there: in the other way.
    """

    launcher: str
    here: list[float]
    there: list[float]

    @property
    def ratio(self) -> float:
        """The median of the other way's seconds by the gang's, within a turn."""
        return statistics.median(there / here for here, there in zip(self.here, self.there, strict=True))


def gang_of(stack: ExitStack, trainer: ScriptTrainer, units: int, folder: str, objective: str) -> RepeatedTrial:
    """A gang that is up, until the stack is closed."""
    gangs = stack.enter_context(trainer.gangs("cost", {}))
    gang = RepeatedTrial(gangs, trainer.hyperparameters, units, folder, objective=objective)
    gang.start(trainer.workers)
    return gang


def bare(words: Sequence[str], output: Path, niceness: int) -> float:
    """Seconds of a command, whose output goes to a file, as nice as a gang's workers."""
    folder = output.parent / f"bare-{time.monotonic_ns()}"
    for each in ("checkpoints", "model"):
        (folder / each).mkdir(parents=True)
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        "SM_CHECKPOINT_DIR": str(folder / "checkpoints"),
        "SM_MODEL_DIR": str(folder / "model"),
    }
    began = time.perf_counter()
    with output.open("w") as file:
        command = ["nice", "-n", str(niceness), *words]
        ended = subprocess.run(command, check=False, cwd=folder, env=environment, stdout=file, stderr=subprocess.STDOUT)
    if ended.returncode:
        last = output.read_text(errors="replace")[-2000:]
        raise WarmbandError(f"{' '.join(command)} ended with exit status {ended.returncode}; its last output:\n{last}")
    return time.perf_counter() - began


def throughput(name: str, repeats: int, seconds: float, scratch: Path) -> Turns:
    """A program on a gang and under its bare launcher."""
    program = PROGRAMS[name]
    metric, regex = program.metric

    def command(units: int) -> list[str]:
        given = {program.length: units, **program.static}
        arguments = [word for name, value in given.items() for word in (f"--{name}", str(value))]
        python = (sys.executable, *program.bare) if program.bare == TORCHRUN else (*program.bare, sys.executable)
        return [*python, str(FOLDER / f"{name}.py"), *arguments]

    few, more = (bare(command(units), scratch / "units.txt", 0) for units in (1, 4))
    units = max(4, round((seconds - few) / max((more - few) / 3, 0.05)))
    trainer = ScriptTrainer(
        f"{name}.py",
        source_dir=FOLDER,
        launcher=program.launcher,
        scaling=ScalingConfig(num_workers=program.workers, placement_strategy="STRICT_PACK"),
        hyperparameters={program.length: units, **program.static},
        metric_definitions=[{"Name": metric, "Regex": regex}],
    )
    here, there = list[float](), list[float]()
    with ExitStack() as stack:
        gang = gang_of(stack, trainer, units, f"{scratch}/{name}", metric)
        for turn in range(repeats):
            for on_gang in (True, False) if turn % 2 else (False, True):
                if on_gang:
                    here.append(gang.train().seconds)
                else:
                    there.append(bare(command(units), scratch / "bare.txt", gang.niceness))
    return Turns(launcher=program.launcher, here=here, there=there)


def first_steps(repeats: int, scratch: Path) -> Turns:
    """Until the first step of a fine-tune: kept loaded, and started for each trial."""
    sides: dict[bool, list[float]] = {True: [], False: []}
    with ExitStack() as stack:
        gangs = {}
        for kept in sides:
            trainer = ScriptTrainer(
                "transformers_kept.py",
                source_dir=KEPT,
                launcher="torchrun",
                keep_loaded=kept,
                scaling=ScalingConfig(num_workers=2),
                hyperparameters={"num_train_epochs": 1},
                metric_definitions=[FIRST_STEP],
            )
            gangs[kept] = gang_of(stack, trainer, 1, f"{scratch}/first-{kept}", "eval_loss")
        for _ in range(repeats + 1):
            for kept, gang in gangs.items():
                turn = gang.train()
                handed_out = turn.segment.first_step_at - turn.starting
                sides[kept].append(turn.segment.reports[-1].metrics["first_step"] - handed_out)
    return Turns(launcher="torchrun", here=sides[True][1:], there=sides[False][1:])


def output(repeats: int, seconds: float, scratch: Path) -> Turns:
    """A program that prints much, by its own clock."""
    began = time.perf_counter()
    work(1_000_000)
    turns = round(1_000_000 / LINES_A_SECOND / (time.perf_counter() - began))
    given = {"lines": round(seconds * LINES_A_SECOND), "turns": turns, "epochs": 1}
    trainer = ScriptTrainer(
        "talking.py",
        source_dir=KEPT,
        scaling=ScalingConfig(num_workers=1),
        hyperparameters=given,
        metric_definitions=[
            {"Name": "elapsed", "Regex": r"elapsed=(\S+)"},
            {"Name": "loss", "Regex": r"^step \d+ loss (\S+)"},
        ],
    )
    command = [sys.executable, str(KEPT / "talking.py")]
    command += [word for name, value in given.items() for word in (f"--{name}", str(value))]
    here, there = list[float](), list[float]()
    with ExitStack() as stack:
        gang = gang_of(stack, trainer, 1, f"{scratch}/talking", "elapsed")
        for turn in range(repeats):
            for on_gang in (True, False) if turn % 2 else (False, True):
                if on_gang:
                    here.append(gang.train().segment.reports[-1].metrics["elapsed"])
                    continue
                bare(command, scratch / "talking.txt", gang.niceness)
                there.append(float((scratch / "talking.txt").read_text().rpartition("elapsed=")[2]))
    return Turns(launcher="python", here=here, there=there)


# ---- what came out


def targets(measured: Mapping[str, Turns]) -> list[Target]:
    """The promises, and what was measured of them."""
    kept = [
        Target(
            promise=f"throughput of {name} on a gang, by the bare launcher's",
            limit=0.98,
            measured=turns.ratio,
            unit="x",
            at_least=True,
        )
        for name, turns in measured.items()
        if name in PROGRAMS
    ]
    if "first step" in measured:
        promise = "first step of a program that is kept loaded, times sooner"
        kept.append(Target(promise=promise, limit=20, measured=measured["first step"].ratio, unit="x", at_least=True))
    if "output" in measured:
        promise = "seconds of a program that prints 10,000 lines a second, by those with a file"
        kept.append(Target(promise=promise, limit=1.02, measured=1 / measured["output"].ratio, unit="x"))
    return kept


def rows(measured: Mapping[str, Turns]) -> list[tuple[str, ...]]:
    """A line for each: medians over its turns."""
    return [
        (
            f"`{name}`" if name in PROGRAMS else name,
            turns.launcher,
            f"{statistics.median(turns.here):.2f} s",
            f"{statistics.median(turns.there):.2f} s",
            f"{turns.ratio:.3f}" if turns.ratio < 10 else f"{turns.ratio:.0f}",
        )
        for name, turns in measured.items()
    ]


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/background/benchmarks.md."""
    measured = {name: Turns(**turns) for name, turns in result["program_cost"].items()}
    return {"programs": markdown(COLUMNS, rows(measured)), "promises": promised(result["targets"])}


def show(measured: Mapping[str, Turns]) -> Group:
    """The table that people look at."""
    return Group(table("What it costs that a program is a trial", COLUMNS, rows(measured)), "")


def measure(repeats: int, seconds: float, scratch: Path) -> dict[str, Turns]:
    """All parts, one after the other."""
    measured = {}
    for name, program in PROGRAMS.items():
        if importlib.util.find_spec(program.package) is not None:
            measured[name] = throughput(name, repeats, seconds, scratch)
    if importlib.util.find_spec("transformers") is not None:
        measured["first step"] = first_steps(repeats, scratch)
    measured["output"] = output(SHORT_TURNS * repeats, seconds / SHORT_TURNS, scratch)
    return measured


def main(
    repeats: Annotated[int, typer.Option(min=1, help="Turns of each part.")] = REPEATS,
    seconds: Annotated[float, typer.Option(min=1, help="About how long a program trains.")] = SECONDS,
    quick: Annotated[bool, typer.Option("--quick", help="One short turn of each: whether it runs.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/program_cost"),
) -> None:
    """Measure programs as trials beside their bare launchers, until their first step, and by what they print."""
    console = Console(highlight=False)
    repeats, seconds = (1, 2.0) if quick else (repeats, seconds)
    os.environ.setdefault("RAY_worker_niceness", "0")
    ray.init(address="local", num_cpus=16, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    with tempfile.TemporaryDirectory(prefix="warmband-program-cost-") as scratch:
        measured = measure(repeats, seconds, Path(scratch))
    kept = targets(measured)
    console.print(show(measured), promises(kept))
    result = {
        "program_cost": {name: asdict(turns) for name, turns in measured.items()},
        "targets": targets_to_json(kept),
    }
    console.print(f"written to {write(out, result)}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
