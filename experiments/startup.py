"""From a trial's start to its first training step, and the wall time of a small job: as Ray documents it, and here.

    python -m experiments.startup [--baseline-trials 30] [--baseline-at-once 4] [--data-dir DIR] [--out DIR]

The job is 30 configurations of XGBoost, each trained for the same rounds, none stopped early. It runs

(a) as Ray documents it: a function under Ray Tune whose `XGBoostTrainer(...).fit()` is a Ray Train run per trial, on
    three workers; once with a trial at a time, alone on the machine, and once with four at once;
(b) here: `HyperparameterTuner`, whose gangs of three workers stay up between trials;
(c) in one process, which is what data of this size need: here with `num_workers=0`, and with plain Optuna;

in one run, each of (a) and (b) on a Ray of its own, on the same data, with the same parameters and seeds. That all did
the same work shows in their AUCs: (a) and (b) have to agree; one process cuts the rows' values into bins a little
differently. To be fair to (a), it polls its workers as often as (b) does (Ray's default is ten times slower), its
workers have the priority that (b)'s have (Ray's default is a niceness of 15), it reports once a trial instead of once a
round, reads its rows as (b)'s workers do instead of through Ray Data, and starts neither dashboard nor preemption
watcher. (b), and (c) here, train one more run, un-tuned.

The start of a trial counts from Tune or Optuna taking it up, or from handing it out to a gang, to its first training
step; in (b) with all gangs busy.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from ray.train import ScalingConfig
from rich.console import Console, Group

from experiments.benchmark import Target, markdown, promised, promises, table, targets_to_json, write
from experiments.documented import ROUNDS, WORKERS, Documented, as_documented
from experiments.warm_start import AT_ONCE, SEED, TRIALS, WarmGangs, WarmJob, on_warm_gangs, parameters, warm_job
from experiments.whole_trials import PlainOptuna, starts_in_hand, with_optuna
from trainers.datasets import find, load
from trainers.gang import POLL_SECONDS

ENVIRONMENT = {
    "RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": POLL_SECONDS,
    "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0",
    "RAY_worker_niceness": "0",
}
ARMS = ("", "at once", "the job's first step", "a later start, median", "longest", "the whole job")


@dataclass(frozen=True, kw_only=True)
class Startup:
    """Everything that was measured.

    Args:
        alone: (a) with a trial at a time.
        at_once: (a) with several.
        gangs: (b)'s gangs without a tuner.
        job: (b)'s job.
        hand_starts: of trials in one process, here.
        hand: the job in one process, here.
        optuna: the same with Optuna.
        threads: of XGBoost's in one process.
    """

    alone: Documented
    at_once: Documented
    gangs: WarmGangs
    job: WarmJob
    hand_starts: list[float]
    hand: WarmJob
    optuna: PlainOptuna
    threads: int


def later(starts: Sequence[float]) -> float:
    """The median start after the first."""
    return statistics.median(starts[1:] or starts)


def whole(documented: Documented, trials: int) -> float:
    """Seconds of (a)'s job with so many trials: scaled from those that it ran, where they were fewer."""
    # Ray is started and ended once, however many trials there are.
    return documented.ray + (documented.job - documented.ray) * trials / len(documented.objectives)


def largest_difference(one: Sequence[float], other: Sequence[float]) -> float:
    """Between the AUCs of two jobs, over the trials that both trained."""
    return max(abs(a - b) for a, b in zip(one, other, strict=False))


def targets(measured: Startup) -> list[Target]:
    """The promises, and what was measured of each."""
    gangs, job = measured.gangs, measured.job
    ran, trials = len(measured.alone.objectives), len(job.objectives)
    quicker = min((measured.alone, measured.at_once), key=lambda documented: whole(documented, trials))
    return [
        Target(
            promise="starts after the first, times shorter",
            limit=300,
            measured=later(measured.alone.starts) / statistics.median(gangs.starts),
            unit="x",
            at_least=True,
            note=f"medians; (a) alone, (b) with all {len(gangs.ups)} gangs busy",
        ),
        Target(
            promise=f"the {trials}-trial job, times faster",
            limit=20,
            measured=whole(quicker, trials) / job.job,
            unit="x",
            at_least=True,
            note=f"than (a)'s quicker way, {quicker.at_once} at once"
            + ("" if ran == trials else f", scaled from {ran} trials, not measured"),
        ),
        Target(
            promise="from ray.init to the first training step",
            limit=12,
            measured=max(job.first_step, sum(gangs.first_step.values())),
            note="the slower of gangs and job",
        ),
        Target(
            promise="closing", limit=3, measured=max(job.closing, gangs.closing), note="the slower of gangs and job"
        ),
        Target(
            promise="added to an assignment",
            limit=0.03,
            measured=statistics.median(gangs.added),
            note=f"median of {len(gangs.added)}; all {len(gangs.ups)} gangs busy",
        ),
    ]


def result(measured: Startup, dataset: Mapping[str, Any]) -> dict[str, Any]:
    """Everything measured, for result.json."""
    trials = measured.job.objectives
    aucs = {
        "as Ray documents it, alone": measured.alone.objectives,
        "as Ray documents it, at once": measured.at_once.objectives,
        "one process, here": measured.hand.objectives,
        "one process, Optuna": measured.optuna.objectives,
    }
    return {
        "dataset": dict(dataset),
        "setting": {"trials": TRIALS, "rounds": ROUNDS, "workers": WORKERS, "at_once": AT_ONCE, "seed": SEED},
        "environment": ENVIRONMENT,
        **asdict(measured),
        "largest_difference_of_auc": {name: largest_difference(found, trials) for name, found in aucs.items()},
        "targets": targets_to_json(targets(measured)),
    }


# ---- as tables, from what result.json holds


def arms(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The same job in every way."""
    trials = len(result["job"]["objectives"])
    gangs, job, hand, optuna = (result[name] for name in ("gangs", "job", "hand", "optuna"))
    rows = []
    for way in (Documented(**result["alone"]), Documented(**result["at_once"])):
        of = "" if len(way.objectives) == trials else f", scaled from {len(way.objectives)} of {trials} trials"
        rows.append(
            (
                "as Ray documents it, alone on the machine" if way.at_once == 1 else "as Ray documents it",
                f"{way.at_once} x {WORKERS} workers",
                f"{way.first_step:.1f} s",
                f"{later(way.starts):.1f} s",
                f"{max(way.starts[1:] or way.starts):.1f} s",
                f"{whole(way, trials):.1f} s{of}",
            )
        )
    busy = f"{len(gangs['ups'])} x {WORKERS} workers; the job {job['gangs']} x {WORKERS}"
    one = f"one process, {result['threads']} threads"
    for name, at_once, first, starts, seconds in (
        ("here, on gangs", busy, job["first_step"], gangs["starts"], job["job"]),
        ("here, `num_workers=0`", one, hand["first_step"], result["hand_starts"], hand["job"]),
        ("Optuna, one process", one, optuna["first_step"], optuna["starts"][1:], optuna["job"]),
    ):
        figures = (f"{statistics.median(starts):.4f} s", f"{max(starts):.4f} s")
        rows.append((name, at_once, f"{first:.1f} s", *figures, f"{seconds:.1f} s"))
    return rows


def first_step(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Where the seconds to the first step, and those of closing, go."""
    gangs, job = result["gangs"], result["job"]
    rows = [*gangs["first_step"].items(), ("together", sum(gangs["first_step"].values()))]
    rows += [("the job's first step, with the tuner", job["first_step"])]
    rows += [("closing all gangs", gangs["closing"]), ("closing the job, Ray's own end included", job["closing"])]
    return [(step, f"{seconds:.2f} s") for step, seconds in rows]


def short(result: Mapping[str, Any]) -> str:
    """A line for those who read no tables."""
    alone, several = Documented(**result["alone"]), Documented(**result["at_once"])
    trials = len(result["job"]["objectives"])
    whole_job = min(whole(alone, trials), whole(several, trials))
    return (
        f"a trial after the first starts in {statistics.median(result['gangs']['starts']):.3f} s where the documented "
        f"way takes {later(alone.starts):.1f} s alone on the machine and {later(several.starts):.1f} s with "
        f"{several.at_once} at once; a job of {trials} short trials takes {result['job']['job']:.1f} s on gangs, "
        f"{whole_job:.0f} s the documented way, and in one process, where data of this size belong, "
        f"{result['hand']['job']:.1f} s here and {result['optuna']['job']:.1f} s with plain Optuna"
    )


def differences(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How far the AUCs of each way are from those on gangs."""
    return [(name, f"{value:.1e}") for name, value in result["largest_difference_of_auc"].items()]


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/benchmarks.md, and the line of README.md."""
    return {
        "arms": markdown(ARMS, arms(result)),
        "first-step": markdown(("", ""), first_step(result)),
        "differences": markdown(("", "largest difference between AUCs"), differences(result)),
        "promises": promised(result["targets"]),
        "short": short(result),
    }


def show(measured: Startup, title: str) -> Group:
    """The tables that people look at."""
    made = result(measured, {})
    return Group(
        table(title, ARMS, arms(made)),
        "",
        table("On gangs: from ray.init to the first training step, and the end", ("", ""), first_step(made)),
        "",
        table("Largest difference from the AUCs on gangs", ("", ""), differences(made)),
        "",
        promises(targets(measured)),
    )


def main(
    baseline_trials: Annotated[
        int, typer.Option(min=1, max=TRIALS, help="How many of the trials (a) runs, in each of its two ways.")
    ] = TRIALS,
    baseline_at_once: Annotated[int, typer.Option(min=2, help="Trials at once in the second way of (a).")] = AT_ONCE,
    data_dir: Annotated[str | None, typer.Option(help="Folder that holds the bank marketing data.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/startup"),
) -> None:
    """Measure how long trials take to start, and a small job to run: as Ray documents it, here, and in one process."""
    console = Console(highlight=False)
    name = "bank-marketing" if find("bank-marketing", data_dir) else "bank-marketing-synthetic"
    dataset = load(name, data_dir=data_dir)
    os.environ.update(ENVIRONMENT)
    os.environ.pop("RAY_ADDRESS", None)  # Each part measures a Ray of its own.
    threads = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory(prefix="warmband-startup-") as scratch:
        gangs = on_warm_gangs(dataset, scratch)
        console.print(f"(b) the first trial trained {sum(gangs.first_step.values()):.1f} s after ray.init")
        job, trials = warm_job(dataset, scratch, ScalingConfig(num_workers=WORKERS))
        console.print(f"(b) {TRIALS} trials took {job.job:.1f} s; now in one process")
        starts = starts_in_hand(dataset, scratch, threads)
        hand, _ = warm_job(dataset, scratch, ScalingConfig(num_workers=0))
        plain = with_optuna(dataset, trials, threads)
        given = [parameters(trial) for trial in trials[:baseline_trials]]
        console.print(f"now {baseline_trials} trials of (a), one at a time")
        alone = as_documented(given, dataset, 1, f"{scratch}/alone")
        console.print(f"the first of them began to train after {alone.starts[0]:.1f} s; now {baseline_at_once} at once")
        several = as_documented(given, dataset, baseline_at_once, f"{scratch}/at-once")
    measured = Startup(
        alone=alone,
        at_once=several,
        gangs=gangs,
        job=job,
        hand_starts=starts,
        hand=hand,
        optuna=plain,
        threads=threads,
    )
    title = f"{dataset.title}: {ROUNDS} rounds a trial, {os.cpu_count()} cores"
    console.print(show(measured, title))
    rows = {"name": dataset.name, "synthetic": dataset.synthetic, "train": len(dataset.train)}
    console.print(f"written to {write(out, result(measured, rows))}")


if __name__ == "__main__":
    typer.run(main)
