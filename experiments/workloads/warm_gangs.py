"""The start-up benchmark's trials here: on warm gangs, with the tuner, and in one process."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import ray
from ray.train import ScalingConfig
from rich.console import Console

from experiments.workloads.repeated_trial import RepeatedTrial
from experiments.workloads.small_job import (
    AT_ONCE,
    RANGES,
    ROUNDS,
    SEED,
    STATIC,
    TRIALS,
    WORKERS,
    assignment,
    place,
    start_ray,
)
from hpo import HyperparameterTuner
from hpo.record import Store, TrialRow
from hpo.sagemaker import tuned_trials
from trainers import XGBoostTrainer
from trainers.channels import open_channels
from trainers.datasets import Dataset
from trainers.gangs import GangUp, Progress, RayGangs, Segment, Served

TINY_ASSIGNMENTS = 200


@dataclass(frozen=True, kw_only=True)
class WarmGangs:
    """Gangs without a tuner, in seconds.

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
    """The job with the tuner, in seconds.

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


def warm_job(dataset: Dataset, scratch: str, scaling: ScalingConfig) -> tuple[WarmJob, list[TrialRow]]:
    """Runs the job with the tuner, which starts and ends Ray, or does without where there are no workers.

    Returns:
        What it took, and its trials.
    """
    in_hand = scaling.num_workers == 0
    name = "in-hand" if in_hand else "on-gangs"
    url = f"sqlite:///{scratch}/{name}.db"
    tuner = HyperparameterTuner(
        XGBoostTrainer(scaling=scaling, hyperparameters={**STATIC, "num_round": ROUNDS}),
        "validation:auc",
        RANGES,
        strategy="Random",
        max_jobs=TRIALS,
        max_parallel_jobs=1 if in_hand else AT_ONCE,
        random_seed=SEED,
        storage_path=f"{scratch}/jobs",
        store=url,
        console=Console(quiet=True),
    )
    began = time.time()
    tuner.fit({"train": dataset.train, "validation": dataset.validation}, job_name=name)
    ended = time.time()
    with Store(url) as store:
        summary, trials = store.job(name).summary, tuned_trials(store, name)
    job = WarmJob(
        gangs=summary["gangs"],
        # The summary counts from the first decision, and is made when all else is done.
        first_step=ended - summary["wall_seconds"] + summary["first_step_seconds"] - began,
        closing=ended - max(trial.ended_at or ended for trial in trials),
        job=ended - began,
        objectives=[math.nan if trial.objective is None else trial.objective for trial in trials],
    )
    return job, trials


def starts_in_hand(dataset: Dataset, scratch: str, threads: int) -> list[float]:
    """Seconds from handing an assignment out to its first training step, in this process, for trials of one round."""
    scaling = ScalingConfig(num_workers=0, resources_per_worker={"CPU": threads})
    trainer = XGBoostTrainer(scaling=scaling, hyperparameters=STATIC)
    channels = open_channels({"train": dataset.train, "validation": dataset.validation})
    with trainer.gangs("in-hand", channels) as gangs:
        trial = RepeatedTrial(gangs, STATIC, 1, f"{scratch}/hand", SEED)
        trial.start(0)
        return [trial.train().starting for _ in range(TINY_ASSIGNMENTS)]
