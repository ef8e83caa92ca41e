"""From a trial's start to its first training step, and the wall time of a small job: as Ray documents it, and here.

    python -m experiments.startup [--baseline-trials 30] [--rounds 10] [--at-once 4] [--data-dir DIR] [--out DIR]

The job is 30 configurations of XGBoost on three workers, each trained for the same rounds, none stopped early. It runs

(a) as Ray documents it: a function under Ray Tune whose `XGBoostTrainer(...).fit()` is a Ray Train run per trial;
(b) here: `HyperparameterTuner`, whose gangs of workers stay up between trials;

in one run, each on a Ray of its own, on the same data, with the same parameters, seeds and number of trials at once.
That both did the same work shows in their AUCs, which have to agree. To be fair to (a), it polls its workers as often
as (b) does (Ray's default is ten times slower), reports once a trial instead of once a round, reads its rows as (b)'s
workers do instead of through Ray Data, and starts neither dashboard nor preemption watcher. (b) trains one more run,
un-tuned.
"""

from __future__ import annotations

import json
import logging
import os
import platform
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import ray
import ray.train
import typer
import xgboost
from ray import tune
from ray.train import Checkpoint, ScalingConfig
from ray.train.xgboost import XGBoostTrainer as RayXGBoostTrainer
from ray.tune.integration.ray_train import TuneReportCallback
from ray.tune.schedulers import FIFOScheduler
from rich.console import Console, Group
from rich.table import Table

from hpo import ContinuousParameter, HyperparameterTuner, IntegerParameter
from hpo.analytics import tuned_trials
from hpo.controller import derive_seed
from hpo.ranges import ParameterRange
from hpo.store import Store, TrialRow
from trainers import Channel, XGBoostTrainer
from trainers.assignment import Assignment, GangUp, Segment, Served
from trainers.datasets import Dataset, find, load
from trainers.gang import POLL_SECONDS
from trainers.gangs import RayGangs
from trainers.xgboost_allreduce import booster_parameters

TRIALS, WORKERS, SEED = 30, 3, 1729
TINY_ASSIGNMENTS = 200
OBJECTIVE = "validation:auc"
STATIC = {"objective": "binary:logistic", "eval_metric": "auc"}
RANGES: dict[str, ParameterRange] = {
    "eta": ContinuousParameter(0, 1),
    "min_child_weight": ContinuousParameter(1, 10),
    "alpha": ContinuousParameter(0, 2),
    "max_depth": IntegerParameter(1, 10),
    "colsample_bylevel": ContinuousParameter(0, 1),
    "colsample_bytree": ContinuousParameter(0, 1),
}
DRIVER = "TRAIN_DRIVER_RESOURCE"
ENVIRONMENT = {"RAY_TRAIN_HEALTH_CHECK_INTERVAL_S": POLL_SECONDS, "RAY_TRAIN_ENABLE_PREEMPTION_WATCHER": "0"}


@dataclass(frozen=True, kw_only=True)
class Documented:
    """(a), in seconds.

    Args:
        starts: of each trial, from when Tune took it up to rank 0's first training step, in the order of taking up.
        ray_seconds: of `ray.init` and `ray.shutdown`, once a job.
        job_seconds: of the whole job, these included.
        objectives: what each trial reported, by its number.
    """

    starts: list[float]
    ray_seconds: float
    job_seconds: float
    objectives: list[float]


@dataclass(frozen=True, kw_only=True)
class WarmGangs:
    """(b)'s gangs without a tuner, in seconds.

    Args:
        first_start: where the time from `ray.init` to the first training step goes.
        ups: when each gang was up, since `ray.init`.
        starts: with all gangs busy, from handing an assignment out to rank 0's first training step.
        overheads: of the same, from handing out to having the result, less training and writing the checkpoint.
        closing: of ending all gangs, up and idle.
    """

    first_start: dict[str, float]
    ups: list[float]
    starts: list[float]
    overheads: list[float]
    closing: float


@dataclass(frozen=True, kw_only=True)
class WarmJob:
    """(b)'s job, in seconds.

    Args:
        first_step: from `ray.init` to the first training step.
        closing: from the last trial's end until nothing of the job is left but Ray itself.
        job_seconds: of the whole job, `ray.init` and `ray.shutdown` included.
        gangs: how many it started.
        objectives: what each trial reported, by its number.
    """

    first_step: float
    closing: float
    job_seconds: float
    gangs: int
    objectives: list[float]


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is promised, and what was measured of it: `at_least` for ratios, at most for seconds."""

    promise: str
    limit: float
    measured: float
    unit: str
    at_least: bool
    note: str = ""

    @property
    def met(self) -> bool:
        """Whether it was kept in this run."""
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


# ---- (a) as Ray documents it


def train_loop(config: dict[str, Any]) -> None:
    """What each worker runs for one trial."""
    rank, world_size = ray.train.get_context().get_world_rank(), ray.train.get_context().get_world_size()
    train, validation = (
        config["channels"]["train"].read(rank, world_size),
        config["channels"]["validation"].read_whole(),
    )
    matrix = xgboost.QuantileDMatrix(train.features, train.labels, nthread=1)
    evaluated = xgboost.QuantileDMatrix(validation.features, validation.labels, nthread=1, ref=matrix)
    curve: dict[str, dict[str, list[float]]] = {}
    first_step_at = time.time()
    booster = xgboost.train(
        config["parameters"],
        matrix,
        num_boost_round=config["rounds"],
        evals=[(evaluated, "validation")],
        evals_result=curve,
        verbose_eval=False,
    )
    metrics = {"objective": curve["validation"]["auc"][-1], "first_step_at": first_step_at}
    with tempfile.TemporaryDirectory() as folder:
        if rank == 0:
            booster.save_model(f"{folder}/model.ubj")
        ray.train.report(metrics, checkpoint=Checkpoint.from_directory(folder) if rank == 0 else None)


def train_driver(
    config: dict[str, Any], trials: Sequence[dict[str, Any]], rounds: int, channels: Any, path: str
) -> None:
    """What Ray Tune runs for one trial: a Ray Train run of its own."""
    RayXGBoostTrainer(
        train_loop,
        train_loop_config={"parameters": trials[config["number"]], "rounds": rounds, "channels": channels},
        scaling_config=ScalingConfig(num_workers=WORKERS),
        run_config=ray.train.RunConfig(
            name=f"train-{tune.get_context().get_trial_id()}",
            storage_path=path,
            callbacks=[TuneReportCallback()],  # type: ignore[no-untyped-call, list-item]  # Ray is untyped here
        ),
    ).fit()


class NotingScheduler(FIFOScheduler):
    """Ray Tune's default scheduler, which also notes when Tune takes each trial up."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # Ray is untyped here
        self.taken_up: dict[str, float] = {}

    def on_trial_add(self, tune_controller: Any, trial: Any) -> None:
        self.taken_up[trial.trial_id] = time.time()


def as_documented(
    trials: Sequence[dict[str, Any]], dataset: Dataset, rounds: int, at_once: int, scratch: str
) -> Documented:
    """Runs a job of these XGBoost parameters."""
    began = time.time()
    start_ray(at_once, {DRIVER: 1.0})
    inside = time.time()
    try:
        scheduler = NotingScheduler()
        driver = tune.with_parameters(
            train_driver, trials=list(trials), rounds=rounds, channels=place(dataset), path=f"{scratch}/train"
        )
        results = tune.Tuner(
            tune.with_resources(driver, {DRIVER: 0.01}),
            param_space={"number": tune.grid_search(list(range(len(trials))))},
            tune_config=tune.TuneConfig(scheduler=scheduler, max_concurrent_trials=at_once),
            run_config=tune.RunConfig(name="documented", storage_path=f"{scratch}/tune", verbose=0),
        ).fit()
        for error in results.errors:
            raise error
        reports = [results[index].metrics or {} for index in range(len(results))]
        left = time.time()
    finally:
        ray.shutdown()
    ended = time.time()
    by_number = sorted(reports, key=lambda report: report["config"]["number"])
    in_order = sorted(reports, key=lambda report: scheduler.taken_up[report["trial_id"]])
    return Documented(
        starts=[report["first_step_at"] - scheduler.taken_up[report["trial_id"]] for report in in_order],
        ray_seconds=(inside - began) + (ended - left),
        job_seconds=ended - began,
        objectives=[report["objective"] for report in by_number],
    )


# ---- (b) on warm gangs


def on_warm_gangs(dataset: Dataset, rounds: int, at_once: int, scratch: str) -> WarmGangs:
    """Starts the gangs, trains one trial as soon as there is one gang, then keeps all of them busy with tiny trials."""
    began = time.time()
    start_ray(at_once)
    connected = time.time()
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=WORKERS), hyperparameters=STATIC)
    gangs = RayGangs("startup", trainer.program(place(dataset)), trainer.scaling, eager=True)
    assigned: dict[str, float] = {}

    def assign(gang: str, trial: str, stop: int) -> None:
        assigned[gang] = time.time()
        gangs.assign(gang, assignment(trial, trainer.hyperparameters, SEED, stop, f"{scratch}/gangs/{trial}"))

    ups: dict[str, tuple[float, dict[str, float]]] = {}
    asked = time.time()
    first_step_at, starts, overheads, handed_out = 0.0, list[float](), list[float](), 0
    try:
        while len(overheads) < TINY_ASSIGNMENTS:
            gangs.want(at_once, None)
            for event in gangs.events(1.0):
                match event:
                    case GangUp():
                        ups[event.gang] = time.time(), event.opening
                        if len(ups) == 1:
                            held = gangs.held_since(event.gang)
                            assign(event.gang, "first", rounds)
                    case Served(segment=Segment() as segment) if segment.checkpoint.endswith("first"):
                        first_step_at = segment.first_step_at
                        assigned.clear()
                    case Served(segment=Segment() as segment):
                        at = assigned.pop(event.gang)
                        worked = segment.training_seconds + segment.checkpointing_seconds
                        starts.append(segment.first_step_at - at)
                        overheads.append(time.time() - at - worked)
                    case _:
                        raise RuntimeError(f"a gang did not serve, so nothing was measured: {event}")
            if len(ups) == at_once and first_step_at:
                for gang in ups.keys() - assigned.keys():
                    assign(gang, f"tiny-{handed_out:03d}", 1)
                    handed_out += 1
    finally:
        closing_since = time.time()
        gangs.close()
        closing = time.time() - closing_since
        ray.shutdown()
    up, opening = next(iter(ups.values()))
    return WarmGangs(
        first_start={
            "ray.init": connected - began,
            "data placed, mailbox opened": asked - connected,
            "Ray Train's controller, until the CPUs are held": held - asked,
            "worker processes": up - held - sum(opening.values()),
            **{f"worker: {step}": seconds for step, seconds in opening.items()},
            "assignment to first step": first_step_at - up,
        },
        ups=[at - began for at, _ in ups.values()],
        starts=starts,
        overheads=overheads,
        closing=closing,
    )


def warm_job(dataset: Dataset, rounds: int, at_once: int, scratch: str) -> tuple[WarmJob, list[TrialRow]]:
    """Runs the job with the tuner; returns its trials beside."""
    url = f"sqlite:///{scratch}/store.db"
    tuner = HyperparameterTuner(
        XGBoostTrainer(scaling=ScalingConfig(num_workers=WORKERS), hyperparameters={**STATIC, "num_round": rounds}),
        OBJECTIVE,
        RANGES,
        strategy="Random",
        max_jobs=TRIALS,
        max_parallel_jobs=at_once,
        random_seed=SEED,
        storage_path=f"{scratch}/jobs",
        store=url,
        console=Console(quiet=True),
    )
    began = time.time()
    start_ray(at_once)
    try:
        tuner.fit({"train": dataset.train, "validation": dataset.validation}, job_name="startup")
        fitted = time.time()
    finally:
        ray.shutdown()
    ended = time.time()
    with Store(url) as store:
        summary, trials = store.job("startup").summary, tuned_trials(store, "startup")
    # The controller's clock began `wall_seconds` before it ended, which was a moment before `fit` returned.
    first_step_at = fitted - summary["wall_seconds"] + summary["first_step_seconds"]
    job = WarmJob(
        first_step=first_step_at - began,
        closing=fitted - max(trial.ended_at or fitted for trial in trials),
        job_seconds=ended - began,
        gangs=summary["gangs"],
        objectives=[trial.objective if trial.objective is not None else float("nan") for trial in trials],
    )
    return job, trials


# ---- what both share


def start_ray(at_once: int, resources: Mapping[str, float] | None = None) -> None:
    """Ray on this machine, with as many logical CPUs as the workers of all trials at once."""
    ray.init(
        address="local",
        num_cpus=WORKERS * at_once,
        resources=dict(resources or {}),
        include_dashboard=False,
        logging_level=logging.ERROR,
        log_to_driver=False,
    )


def place(dataset: Dataset) -> dict[str, Any]:
    """The rows in Ray's object store, a shard a worker."""
    channels = {"train": dataset.train, "validation": dataset.validation}
    return {name: Channel.of(frame, name=name).place(WORKERS) for name, frame in channels.items()}


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


def parameters(trial: TrialRow, rounds: int) -> dict[str, Any]:
    """What XGBoost is given for a trial, seed and threads included: the same in (a) and (b)."""
    hyperparameters = {**STATIC, **trial.hyperparameters}
    seed = derive_seed(SEED, trial.number)
    return booster_parameters(assignment(trial.trial_id, hyperparameters, seed, rounds, ""), cpus=1)


# ---- what came out


def targets(documented: Documented, gangs: WarmGangs, job: WarmJob) -> list[Target]:
    """The promises, and what was measured of each."""
    ran = len(documented.objectives)
    # What is paid once a job is not scaled.
    whole = documented.ray_seconds + (documented.job_seconds - documented.ray_seconds) * len(job.objectives) / ran
    scaled = "" if ran == len(job.objectives) else f"(a) is scaled from {ran} trials, not measured"
    later = documented.starts[1:] or documented.starts
    start_ratio = statistics.median(later) / statistics.median(gangs.starts)
    rows: list[tuple[str, float, float, str, bool, str]] = [
        ("starts after the first, times shorter", 300, start_ratio, "x", True, "medians; gangs all busy"),
        ("the job as a whole, times faster", 20, whole / job.job_seconds, "x", True, scaled),
        (
            "from ray.init to the first training step",
            12,
            max(job.first_step, sum(gangs.first_start.values())),
            "s",
            False,
            "the slower of two",
        ),
        ("closing", 3, max(job.closing, gangs.closing), "s", False, "the slower of two"),
        (
            "added to an assignment",
            0.03,
            statistics.median(gangs.overheads),
            "s",
            False,
            f"median of {len(gangs.overheads)}; gangs all busy",
        ),
    ]
    return [
        Target(promise=promise, limit=limit, measured=measured, unit=unit, at_least=at_least, note=note)
        for promise, limit, measured, unit, at_least, note in rows
    ]


def largest_difference(documented: Documented, job: WarmJob) -> float:
    """Between the AUCs of (a) and (b) over the trials that both trained; 0 shows that they did the same work."""
    return max(abs(a - b) for a, b in zip(documented.objectives, job.objectives, strict=False))


def result(documented: Documented, gangs: WarmGangs, job: WarmJob, setting: Mapping[str, Any]) -> dict[str, Any]:
    """Everything measured, for result.json."""
    return {
        **setting,
        "machine": {
            "cores": os.cpu_count(),
            "load_at_the_end": os.getloadavg(),
            "platform": platform.platform(),
            "python": platform.python_version(),
            "ray": ray.__version__,
            "xgboost": xgboost.__version__,
        },
        "as_ray_documents_it": asdict(documented),
        "warm_gangs": asdict(gangs),
        "warm_job": asdict(job),
        "largest_difference_of_auc": largest_difference(documented, job),
        "targets": [{**asdict(target), "met": target.met} for target in targets(documented, gangs, job)],
    }


def show(documented: Documented, gangs: WarmGangs, job: WarmJob, title: str) -> Group:
    """The tables that people look at."""
    ran, trials = len(documented.objectives), len(job.objectives)
    both = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in ("seconds", "(a) as Ray documents it", "(b) warm gangs"):
        both.add_column(column, justify="left" if column == "seconds" else "right")
    both.add_row("first trial's start", f"{documented.starts[0]:.1f}", f"{job.first_step:.1f} from ray.init")
    later = documented.starts[1:] or documented.starts
    both.add_row("later starts, median", f"{statistics.median(later):.2f}", f"{statistics.median(gangs.starts):.4f}")
    both.add_row("later starts, slowest", f"{max(later):.2f}", f"{max(gangs.starts):.4f}")
    both.add_row("job, ray.init to ray.shutdown", f"{documented.job_seconds:.1f}", f"{job.job_seconds:.1f}")
    both.add_row("of how many trials", str(ran), f"{trials} and the un-tuned run")
    both.add_row("a trial", f"{documented.job_seconds / ran:.2f}", f"{job.job_seconds / trials:.2f}")
    both.add_row("largest difference of the AUCs", "", f"{largest_difference(documented, job):.1e}")

    first = Table(title="(b) from ray.init to the first training step", title_justify="left", box=None, pad_edge=False)
    first.add_column("step")
    first.add_column("seconds", justify="right")
    for step, seconds in gangs.first_start.items():
        first.add_row(step, f"{seconds:.2f}")
    first.add_row("sum", f"{sum(gangs.first_start.values()):.2f}")
    first.add_row("gangs up at", ", ".join(f"{up:.1f}" for up in gangs.ups))
    first.add_row("closing: gangs by hand, job", f"{gangs.closing:.2f}, {job.closing:.2f}")

    kept = Table(title="Promises", title_justify="left", box=None, pad_edge=False)
    for column in ("", "promised", "measured", "", ""):
        kept.add_column(column)
    for target in targets(documented, gangs, job):
        limit = f"{'at least' if target.at_least else 'at most'} {target.limit:g} {target.unit}"
        verdict = "[green]kept[/]" if target.met else "[red]missed[/]"
        kept.add_row(target.promise, limit, f"{target.measured:.3g} {target.unit}", verdict, target.note)
    return Group(both, "", first, "", kept)


def main(
    baseline_trials: Annotated[int, typer.Option(min=1, max=TRIALS, help="How many trials (a) runs.")] = TRIALS,
    rounds: Annotated[int, typer.Option(min=1, help="Boosting rounds of a trial.")] = 10,
    at_once: Annotated[int, typer.Option(min=1, help="Trials at once, in (a) and in (b).")] = 4,
    data_dir: Annotated[str | None, typer.Option(help="Folder that holds the bank marketing data.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/startup"),
) -> None:
    """Measure how long trials take to start, and a small job to run: as Ray documents it, and on warm gangs."""
    console = Console(highlight=False)
    name = "bank-marketing" if find("bank-marketing", data_dir) else "bank-marketing-synthetic"
    dataset = load(name, data_dir=data_dir)
    os.environ.update(ENVIRONMENT)
    with tempfile.TemporaryDirectory(prefix="warmband-startup-") as scratch:
        gangs = on_warm_gangs(dataset, rounds, at_once, scratch)
        console.print(f"(b) gangs: {sum(gangs.first_start.values()):.1f} s from ray.init to the first training step")
        job, trials = warm_job(dataset, rounds, at_once, scratch)
        console.print(f"(b) job: {TRIALS} trials in {job.job_seconds:.1f} s. (a) takes minutes now ...")
        given = [parameters(trial, rounds) for trial in trials[:baseline_trials]]
        documented = as_documented(given, dataset, rounds, at_once, scratch)
    title = (
        f"{dataset.title}: {rounds} rounds a trial, {WORKERS} workers each, {at_once} at once, {os.cpu_count()} cores"
    )
    console.print(show(documented, gangs, job, title))
    setting = {
        "dataset": dataset.name,
        "synthetic": dataset.synthetic,
        "rows": {"train": len(dataset.train), "validation": len(dataset.validation)},
        "rounds": rounds,
        "workers": WORKERS,
        "at_once": at_once,
        "seed": SEED,
        "environment": ENVIRONMENT,
    }
    out.mkdir(parents=True, exist_ok=True)
    (out / "result.json").write_text(json.dumps(result(documented, gangs, job, setting), indent=1))
    console.print(f"written to {out / 'result.json'}")


if __name__ == "__main__":
    typer.run(main)
