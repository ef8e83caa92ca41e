"""From a trial's start to its first training step, and the wall time of a small job: as Ray documents it, and here.

    python -m experiments.startup [--baseline-trials 30] [--baseline-at-once 4] [--data-dir DIR] [--out DIR]

The job is 30 configurations of XGBoost on three workers, each trained for the same rounds, none stopped early. It runs

(a) as Ray documents it: a function under Ray Tune whose `XGBoostTrainer(...).fit()` is a Ray Train run per trial;
(b) here: `HyperparameterTuner`, whose gangs of workers stay up between trials;

in one run, each on a Ray of its own, on the same data, with the same parameters and seeds. That both did the same work
shows in their AUCs, which have to agree. To be fair to (a), it polls its workers as often as (b) does (Ray's default is
ten times slower), reports once a trial instead of once a round, reads its rows as (b)'s workers do instead of through
Ray Data, and starts neither dashboard nor preemption watcher. (b) trains one more run, un-tuned.

Last, a small job in one process without Ray, here and with Optuna: see `experiments.one_process`.
"""

from __future__ import annotations

import math
import os
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import ray
import typer
from ray.train import ScalingConfig
from rich.console import Console, Group

from experiments import boosting, one_process
from experiments.benchmark import Target, promises, table, targets_to_json, write
from experiments.documented import ROUNDS, WORKERS, Documented, as_documented, place, start_ray
from experiments.one_process import OneProcess
from hpo import HyperparameterTuner
from hpo.analytics import tuned_trials
from hpo.search import derive_seed
from hpo.store import Store, TrialRow
from trainers import XGBoostTrainer
from trainers.assignment import Assignment, GangUp, Progress, Segment, Served
from trainers.datasets import Dataset, find, load
from trainers.gang import POLL_SECONDS
from trainers.ray_gangs import RayGangs
from trainers.xgboost_booster import booster_parameters

TRIALS, AT_ONCE, SEED = 30, 4, 1729
TINY_ASSIGNMENTS = 200
STATIC = {"objective": "binary:logistic", "eval_metric": "auc"}
RANGES = {name: bounds for name, bounds in boosting.RANGES.items() if name != "num_round"}
ENVIRONMENT = {"RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": POLL_SECONDS, "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0"}


@dataclass(frozen=True, kw_only=True)
class WarmGangs:
    """(b)'s gangs without a tuner, in seconds.

    Args:
        first_step: the parts of the time from `ray.init` to the first training step.
        ups: when each gang was up, since `ray.init`.
        starts: with all gangs busy, from handing an assignment out to rank 0's first training step.
        added: of the same, from handing out to having the result, less training and checkpointing.
        closing: of all gangs, up and idle.
    """

    first_step: dict[str, float]
    ups: list[float]
    starts: list[float]
    added: list[float]
    closing: float


@dataclass(frozen=True, kw_only=True)
class WarmJob:
    """(b)'s job, in seconds.

    Args:
        gangs: how many came up while there was work.
        first_step: since the job began, Ray's start included.
        closing: from its last trial's end until nothing is left, Ray's end included.
        job: as a whole.
        objectives: what each trial reported, by its number.
    """

    gangs: int
    first_step: float
    closing: float
    job: float
    objectives: list[float]


# ---- (b) on warm gangs


def on_warm_gangs(dataset: Dataset, scratch: str) -> WarmGangs:
    """Trains one trial as soon as there is a gang, then keeps all gangs busy with trials of one round."""
    began = time.time()
    start_ray(AT_ONCE)
    connected = time.time()
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=WORKERS), hyperparameters=STATIC)
    placed = place(dataset)
    gangs = RayGangs("startup", lambda workers: trainer.program(placed), trainer.scaling, eager=True)
    asked = time.time()
    ups: dict[str, float] = {}
    handed_out: dict[str, float] = {}
    first: Segment | None = None
    starts, added = list[float](), list[float]()

    def assign(gang: str, trial: str, stop: int) -> None:
        handed_out[gang] = time.time()
        gangs.assign(gang, assignment(trial, STATIC, SEED, stop, f"{scratch}/gangs/{trial}"))

    try:
        while len(added) < TINY_ASSIGNMENTS:
            gangs.want({WORKERS: AT_ONCE}, None)
            for event in gangs.events(1.0):
                match event:
                    case GangUp():
                        if not ups:
                            held, up, opening = gangs.held_since(event.gang), time.time(), event.opening
                            assign(event.gang, "first", ROUNDS)
                        ups[event.gang] = time.time() - began
                    case Served(segment=Segment() as segment):
                        at = handed_out.pop(event.gang)
                        if first is None:
                            first = segment
                            continue
                        starts.append(segment.first_step_at - at)
                        added.append(time.time() - at - segment.training_seconds - segment.checkpointing_seconds)
                    case Progress():
                        pass
                    case _:
                        raise RuntimeError(f"a gang did not serve, so nothing was measured: {event}")
            if len(ups) == AT_ONCE and first is not None:
                for gang in ups.keys() - handed_out.keys():
                    assign(gang, f"tiny-{time.monotonic_ns()}", 1)
    finally:
        closing_since = time.time()
        gangs.close()
        closing = time.time() - closing_since
        ray.shutdown()
    assert first is not None, "the loop ends behind it"
    return WarmGangs(
        first_step={
            "ray.init": connected - began,
            "placing the rows, opening the mailbox": asked - connected,
            "Ray Train's controller, until the workers' CPUs are held": held - asked,
            "worker processes": up - held - sum(opening.values()),
            **{f"on the workers: {step}": seconds for step, seconds in opening.items()},
            "assignment to first step": first.first_step_at - up,
        },
        ups=list(ups.values()),
        starts=starts,
        added=added,
        closing=closing,
    )


def warm_job(dataset: Dataset, scratch: str) -> tuple[WarmJob, list[TrialRow]]:
    """Runs the job with the tuner, which starts and ends Ray; returns its trials beside."""
    url = f"sqlite:///{scratch}/store.db"
    tuner = HyperparameterTuner(
        XGBoostTrainer(scaling=ScalingConfig(num_workers=WORKERS), hyperparameters={**STATIC, "num_round": ROUNDS}),
        "validation:auc",
        RANGES,
        strategy="Random",
        max_jobs=TRIALS,
        max_parallel_jobs=AT_ONCE,
        random_seed=SEED,
        storage_path=f"{scratch}/jobs",
        store=url,
        console=Console(quiet=True),
    )
    began = time.time()
    tuner.fit({"train": dataset.train, "validation": dataset.validation}, job_name="startup")
    ended = time.time()
    with Store(url) as store:
        summary, trials = store.job("startup").summary, tuned_trials(store, "startup")
    job = WarmJob(
        gangs=summary["gangs"],
        # The summary counts from the first decision, and is made when all else is done.
        first_step=ended - summary["wall_seconds"] + summary["first_step_seconds"] - began,
        closing=ended - max(trial.ended_at or ended for trial in trials),
        job=ended - began,
        objectives=[math.nan if trial.objective is None else trial.objective for trial in trials],
    )
    return job, trials


# ---- what both share


def assignment(trial: str, hyperparameters: Mapping[str, Any], seed: int, stop: int, save_to: str) -> Assignment:
    """A whole trial of `stop` rounds."""
    return Assignment(
        trial_id=trial,
        hyperparameters=dict(hyperparameters),
        seed=seed,
        start=0,
        stop=stop,
        checkpoint=None,
        save_to=save_to,
    )


def parameters(trial: TrialRow) -> dict[str, Any]:
    """What XGBoost is given for a trial here, seed and threads included, for (a) to give it too."""
    seed = derive_seed(SEED, trial.number)
    return booster_parameters(assignment(trial.trial_id, STATIC | trial.hyperparameters, seed, ROUNDS, ""), cpus=1)


# ---- what came out


def later_start(documented: Documented) -> float:
    """The median start in (a) after the first."""
    return statistics.median(documented.starts[1:] or documented.starts)


def largest_difference(documented: Documented, job: WarmJob) -> float:
    """Between the AUCs of (a) and (b) over the trials that both trained: next to 0 if they did the same work."""
    return max(abs(a - b) for a, b in zip(documented.objectives, job.objectives, strict=False))


def targets(documented: Documented, gangs: WarmGangs, job: WarmJob, one: OneProcess) -> list[Target]:
    """The promises, and what was measured of each."""
    ran, trials = len(documented.objectives), len(job.objectives)
    # Ray is started and ended once, however many trials there are.
    whole = documented.ray + (documented.job - documented.ray) * trials / ran
    return [
        Target(
            promise="starts after the first, times shorter",
            limit=300,
            measured=later_start(documented) / statistics.median(gangs.starts),
            unit="x",
            at_least=True,
            note=f"medians; (b) with all {len(gangs.ups)} gangs busy",
        ),
        Target(
            promise=f"the {trials}-trial job, times faster",
            limit=20,
            measured=whole / job.job,
            unit="x",
            at_least=True,
            note="" if ran == trials else f"(a) scaled from {ran} trials, not measured",
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
        one_process.target(one),
    ]


def result(
    documented: Documented, gangs: WarmGangs, job: WarmJob, one: OneProcess, dataset: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything measured, for result.json."""
    return {
        "dataset": dict(dataset),
        "setting": {"trials": TRIALS, "rounds": ROUNDS, "workers": WORKERS, "at_once": AT_ONCE, "seed": SEED},
        "environment": ENVIRONMENT,
        "as_ray_documents_it": asdict(documented),
        "warm_gangs": asdict(gangs),
        "warm_job": asdict(job),
        "one_process": asdict(one),
        "largest_difference_of_auc": largest_difference(documented, job),
        "targets": targets_to_json(targets(documented, gangs, job, one)),
    }


def show(documented: Documented, gangs: WarmGangs, job: WarmJob, one: OneProcess, title: str) -> Group:
    """The tables that people look at."""
    ran, trials = len(documented.objectives), len(job.objectives)
    both = [
        ("trials", str(ran), f"{trials}, and the un-tuned run"),
        ("at once", str(documented.at_once), f"{len(gangs.ups)}; the job needed {job.gangs}"),
        ("first start", f"{documented.starts[0]:.1f}", f"{job.first_step:.1f}, Ray's own start included"),
        ("later starts, median", f"{later_start(documented):.2f}", f"{statistics.median(gangs.starts):.4f}"),
        ("later starts, longest", f"{max(documented.starts[1:] or documented.starts):.2f}", f"{max(gangs.starts):.4f}"),
        ("job", f"{documented.job:.1f}", f"{job.job:.1f}"),
        ("job, a trial", f"{documented.job / ran:.2f}", f"{job.job / trials:.2f}"),
    ]
    first = [(step, f"{seconds:.2f}") for step, seconds in gangs.first_step.items()]
    first.append(("together", f"{sum(gangs.first_step.values()):.2f}"))
    ends = f"Gangs up after {', '.join(f'{up:.1f}' for up in gangs.ups)} s; closed in {gangs.closing:.2f} s, "
    return Group(
        table(title, ("seconds", "(a) as Ray documents it", "(b) here"), both),
        f"Largest difference between the AUCs of (a) and (b): {largest_difference(documented, job):.1e}\n",
        table("(b) from ray.init to the first training step", ("", "seconds"), first),
        f"{ends}the job's, with Ray, in {job.closing:.2f} s\n",
        one_process.show(one),
        promises(targets(documented, gangs, job, one)),
    )


def main(
    baseline_trials: Annotated[int, typer.Option(min=1, max=TRIALS, help="How many of the trials (a) runs.")] = TRIALS,
    baseline_at_once: Annotated[int, typer.Option(min=1, help="Trials at once in (a).")] = AT_ONCE,
    data_dir: Annotated[str | None, typer.Option(help="Folder that holds the bank marketing data.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/startup"),
) -> None:
    """Measure how long trials take to start, and a small job to run: as Ray documents it, and here."""
    console = Console(highlight=False)
    name = "bank-marketing" if find("bank-marketing", data_dir) else "bank-marketing-synthetic"
    dataset = load(name, data_dir=data_dir)
    os.environ.update(ENVIRONMENT)
    os.environ.pop("RAY_ADDRESS", None)  # Each part measures a Ray of its own.
    with tempfile.TemporaryDirectory(prefix="warmband-startup-") as scratch:
        gangs = on_warm_gangs(dataset, scratch)
        console.print(f"(b) the first trial trained {sum(gangs.first_step.values()):.1f} s after ray.init")
        job, trials = warm_job(dataset, scratch)
        console.print(f"(b) {TRIALS} trials took {job.job:.1f} s; now {baseline_trials} trials of (a)")
        given = [parameters(trial) for trial in trials[:baseline_trials]]
        documented = as_documented(given, dataset, baseline_at_once, scratch)
        console.print("now whole jobs in one process, without Ray: here and with Optuna")
        one = one_process.compare(dataset, scratch)
    title = f"{dataset.title}: {ROUNDS} rounds a trial on {WORKERS} workers, {os.cpu_count()} cores"
    console.print(show(documented, gangs, job, one, title))
    rows = {"name": dataset.name, "synthetic": dataset.synthetic, "train": len(dataset.train)}
    console.print(f"written to {write(out, result(documented, gangs, job, one, rows))}")


if __name__ == "__main__":
    typer.run(main)
