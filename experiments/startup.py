"""Start-up time of trials, and the wall time of a small job: as Ray documents it, and here.

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
watcher. (b), and (c) here, train one more run, un-tuned. The jobs of (b) and (c) are run before, between and after the
two of (a), since what else a machine does changes meanwhile; the promises are held against the slowest of (b)'s.

The start of a trial counts from Tune or Optuna taking it up, or from handing it out to a gang, to its first training
step; in (b) with all gangs busy.
"""

from __future__ import annotations

import math
import os
import statistics
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from ray.train import ScalingConfig
from rich.console import Console, Group

from experiments.baselines.optuna_trials import PlainOptuna, with_optuna
from experiments.baselines.ray_as_documented import ENVIRONMENT, Documented, as_documented
from experiments.shared.benchmark import Target, markdown, promised, promises, table, targets_to_json, write
from experiments.shared.blog import marketing
from experiments.workloads.small_job import AT_ONCE, ROUNDS, SEED, TRIALS, WORKERS, parameters
from experiments.workloads.warm_gangs import WarmGangs, WarmJob, on_warm_gangs, starts_in_hand, warm_job
from hpo.cli import errors_in_words
from hpo.record import TrialRow
from trainers.datasets import load

ARMS = ("", "at once", "the job's first step", "a later start, median", "longest", "the whole job")


@dataclass(frozen=True, kw_only=True)
class Startup:
    """Everything that was measured.

    Args:
        alone: (a) with a trial at a time.
        at_once: (a) with several.
        gangs: (b)'s gangs without a tuner.
        jobs: (b)'s job, each time.
        hand_starts: of trials in one process, here.
        hands: the job in one process, here, each time.
        optunas: the same with Optuna.
        threads: of XGBoost's in one process.
    """

    alone: Documented
    at_once: Documented
    gangs: WarmGangs
    jobs: list[WarmJob]
    hand_starts: list[float]
    hands: list[WarmJob]
    optunas: list[PlainOptuna]
    threads: int


def later(starts: Sequence[float]) -> float:
    """The median start after the first."""
    return statistics.median(starts[1:] or starts)


def whole(documented: Documented, trials: int) -> float:
    """Seconds of (a)'s job with so many trials: scaled from those that it ran, where they were fewer."""
    # Ray is started and ended once, however many trials there are.
    return documented.ray + (documented.job - documented.ray) * trials / len(documented.objectives)


def largest_difference(one: Sequence[float], other: Sequence[float]) -> float:
    """Between the AUCs of two jobs, over the trials that both trained; NaN where one of them has none."""
    return _most(abs(a - b) for a, b in zip(one, other, strict=False))


def _most(values: Iterable[float]) -> float:
    """`max` passes over a NaN that does not come first."""
    found = list(values)
    return math.nan if any(map(math.isnan, found)) else max(found)


def targets(measured: Startup) -> list[Target]:
    """The promises, and what was measured of each."""
    gangs, jobs = measured.gangs, measured.jobs
    ran, trials = len(measured.alone.objectives), len(jobs[0].objectives)
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
            measured=whole(quicker, trials) / max(job.job for job in jobs),
            unit="x",
            at_least=True,
            note=f"the slowest of (b)'s {len(jobs)} against (a)'s quicker way, {quicker.at_once} at once"
            + ("" if ran == trials else f", scaled from {ran} trials, not measured"),
        ),
        Target(
            promise="from ray.init to the first training step",
            limit=12,
            measured=max(*(job.first_step for job in jobs), sum(gangs.first_step.values())),
            note=f"the slowest of the gangs alone and {len(jobs)} jobs",
        ),
        Target(
            promise="closing",
            limit=3,
            measured=max(*(job.closing for job in jobs), gangs.closing),
            note=f"the slowest of the gangs alone and {len(jobs)} jobs",
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
    trials = measured.jobs[0].objectives
    ways: dict[str, Sequence[Documented | WarmJob | PlainOptuna]] = {
        "as Ray documents it, alone": [measured.alone],
        "as Ray documents it, at once": [measured.at_once],
        "on gangs, each time": measured.jobs,
        "one process, here": measured.hands,
        "one process, Optuna": measured.optunas,
    }
    return {
        "dataset": dict(dataset),
        "setting": {"trials": TRIALS, "rounds": ROUNDS, "workers": WORKERS, "at_once": AT_ONCE, "seed": SEED},
        "environment": ENVIRONMENT,
        **asdict(measured),
        "largest_difference_of_auc": {
            name: _most(largest_difference(each.objectives, trials) for each in found) for name, found in ways.items()
        },
        "targets": targets_to_json(targets(measured)),
    }


# ---- as tables, from what result.json holds


def arms(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The same job in every way."""
    jobs = result["jobs"]
    trials = len(jobs[0]["objectives"])
    rows: list[tuple[str, ...]] = []
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
    most = max(job["gangs"] for job in jobs)
    busy = f"{len(result['gangs']['ups'])} x {WORKERS} workers; the job {most} x {WORKERS} at most"
    one = f"one process, {result['threads']} threads"
    plain = [start for job in result["optunas"] for start in job["starts"][1:]]
    for name, at_once, starts, times in (
        ("here, on gangs", busy, result["gangs"]["starts"], jobs),
        ("here, `num_workers=0`", one, result["hand_starts"], result["hands"]),
        ("Optuna, one process", one, plain, result["optunas"]),
    ):
        first, whole_job = (spread([job[what] for job in times]) for what in ("first_step", "job"))
        rows.append((name, at_once, first, f"{statistics.median(starts):.4f} s", f"{max(starts):.4f} s", whole_job))
    return rows


def spread(seconds: Sequence[float]) -> str:
    """The median of several times, and between what they lie."""
    return f"{statistics.median(seconds):.1f} s ({min(seconds):.1f} to {max(seconds):.1f})"


def first_step(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Where the seconds to the first step, and those of closing, go."""
    gangs, jobs = result["gangs"], result["jobs"]
    parts = [(step, f"{seconds:.2f} s") for step, seconds in gangs["first_step"].items()]
    return [
        *parts,
        ("together", f"{sum(gangs['first_step'].values()):.2f} s"),
        ("the job's first step, with the tuner", spread([job["first_step"] for job in jobs])),
        ("closing all gangs", f"{gangs['closing']:.2f} s"),
        ("closing the job, Ray's own end included", spread([job["closing"] for job in jobs])),
    ]


def short(result: Mapping[str, Any]) -> str:
    """A line for those who read no tables."""
    alone, several = Documented(**result["alone"]), Documented(**result["at_once"])
    trials = len(result["jobs"][0]["objectives"])
    ran = len(alone.objectives)
    of = "" if ran == trials else f" (scaled from {ran} of them)"
    here, hand, plain = (statistics.median(job["job"] for job in result[way]) for way in ("jobs", "hands", "optunas"))
    return (
        f"a trial after the first starts in {statistics.median(result['gangs']['starts']):.3f} s where the documented "
        f"way takes {later(alone.starts):.1f} s alone on the machine and {later(several.starts):.1f} s with "
        f"{several.at_once} at once; a job of {trials} short trials takes {here:.1f} s on gangs, "
        f"{min(whole(alone, trials), whole(several, trials)):.0f} s the documented way{of}, and in one process, where "
        f"data of this size belong, {hand:.1f} s here and {plain:.1f} s with plain Optuna"
    )


def differences(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """How far the AUCs of each way are from those on gangs."""
    apart = result["largest_difference_of_auc"].items()
    return [
        (name, "a trial without an AUC" if value is None or math.isnan(value) else f"{value:.1e}")
        for name, value in apart
    ]


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/background/benchmarks.md, and the line of README.md."""
    return {
        "arms": markdown(ARMS, arms(result)),
        "first-step": markdown(("", ""), first_step(result)),
        "differences": markdown(("", "largest difference between AUCs"), differences(result)),
        "promises": promised(result["targets"]),
        "short": short(result),
        "later-trial": f"{statistics.median(result['gangs']['starts']):.3f} s; the way that Ray documents takes "
        f"{later(Documented(**result['alone']).starts):.1f} s",
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
    if baseline_trials < baseline_at_once:
        raise typer.BadParameter(f"{baseline_trials} trials cannot run {baseline_at_once} at once; give more of them")
    console = Console(highlight=False)
    name = marketing(data_dir)
    dataset = load(name, data_dir=data_dir)
    os.environ.update(ENVIRONMENT)
    os.environ.pop("RAY_ADDRESS", None)  # Each part measures a Ray of its own.
    threads = len(os.sched_getaffinity(0))
    jobs, hands, optunas = list[WarmJob](), list[WarmJob](), list[PlainOptuna]()
    with tempfile.TemporaryDirectory(prefix="warmband-startup-") as scratch:

        def turn() -> list[TrialRow]:
            """The jobs of (b) and (c)."""
            folder = Path(scratch) / f"turn-{len(jobs)}"
            folder.mkdir()
            job, trials = warm_job(dataset, str(folder), ScalingConfig(num_workers=WORKERS))
            jobs.append(job)
            hands.append(warm_job(dataset, str(folder), ScalingConfig(num_workers=0))[0])
            optunas.append(with_optuna(dataset, trials, threads))
            console.print(f"{TRIALS} trials: (b) {job.job:.1f} s, (c) {hands[-1].job:.1f} s, {optunas[-1].job:.1f} s")
            return trials

        gangs = on_warm_gangs(dataset, scratch)
        console.print(f"(b) the first trial trained {sum(gangs.first_step.values()):.1f} s after ray.init")
        starts = starts_in_hand(dataset, scratch, threads)
        given = [parameters(trial) for trial in turn()[:baseline_trials]]
        console.print(f"now {baseline_trials} trials of (a), one at a time")
        alone = as_documented(given, dataset, 1, f"{scratch}/alone")
        turn()
        console.print(f"now {baseline_trials} trials of (a), {baseline_at_once} at once")
        several = as_documented(given, dataset, baseline_at_once, f"{scratch}/at-once")
        turn()
    measured = Startup(
        alone=alone,
        at_once=several,
        gangs=gangs,
        jobs=jobs,
        hand_starts=starts,
        hands=hands,
        optunas=optunas,
        threads=threads,
    )
    title = f"{dataset.title}: {ROUNDS} rounds a trial, {os.cpu_count()} cores"
    console.print(show(measured, title))
    rows = {"name": dataset.name, "synthetic": dataset.synthetic, "train": len(dataset.train)}
    console.print(f"written to {write(out, result(measured, rows))}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
