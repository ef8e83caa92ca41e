"""One trial of XGBoost in turns: on a gang that is up, on plain processes by hand, and through `xgboost_ray`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ray.train import ScalingConfig

from experiments.baselines.plain_processes import PlainProcesses
from experiments.workloads.repeated_trial import RepeatedTrial
from trainers import Channel, XGBoostTrainer
from trainers.channels import open_channels
from trainers.datasets import load
from trainers.xgboost import booster_parameters

PAIR = {"objective": "binary:logistic", "eval_metric": "logloss", "tree_method": "hist"}


@dataclass(frozen=True, kw_only=True)
class Turns:
    """The same trial, trained in turns: wall seconds of each turn.

    Args:
        workers: that train it.
        rows: of the train channel.
        rounds: of the trial.
        seconds: by who trained it: "here", "by hand", and "xgboost_ray".
        difference: the largest between the losses of "here" and "by hand" after any round.
    """

    workers: int
    rows: int
    rounds: int
    seconds: dict[str, list[float]]
    difference: float

    @property
    def ratios(self) -> list[float]:
        """How many times as long as by hand it takes here, by turn."""
        return [here / hand for here, hand in zip(self.seconds["here"], self.seconds["by hand"], strict=True)]


def turns(
    name: str, data_dir: str | None, repeat: int, *, rounds: int, pairs: int, workers: int, scratch: str
) -> Turns:
    """One trial here and by hand in so many turns, and as often through xgboost_ray."""
    dataset = load(name, data_dir=data_dir, repeat=repeat)
    channels = open_channels({"train": dataset.train, "validation": dataset.validation})
    scaling = ScalingConfig(num_workers=workers)
    seconds: dict[str, list[float]] = {"here": [], "by hand": []}
    with XGBoostTrainer(scaling=scaling, hyperparameters=PAIR).gangs("efficiency", channels) as gangs:
        here = RepeatedTrial(gangs, PAIR, rounds, f"{scratch}/here")
        here.start(workers)
        parameters = booster_parameters(here.assignment(), cpus=1)
        hand = PlainProcesses(channels, workers, parameters, rounds, niceness=here.niceness)
        try:
            hand.start()
            curve = [report.metrics["validation:logloss"] for report in here.train().segment.reports]
            _, by_hand = hand.train(f"{scratch}/by-hand")
            for turn in range(pairs):
                for who in ("here", "by hand") if turn % 2 else ("by hand", "here"):
                    took = here.train().seconds if who == "here" else hand.train(f"{scratch}/by-hand")[0]
                    seconds[who].append(took)
        finally:
            hand.close()
    seconds["xgboost_ray"] = _through_xgboost_ray(channels, scaling, rounds, pairs, scratch)
    return Turns(
        workers=workers,
        rows=len(dataset.train),
        rounds=rounds,
        seconds=seconds,
        difference=max(abs(a - b) for a, b in zip(curve, by_hand, strict=True)),
    )


def _through_xgboost_ray(
    channels: Mapping[str, Channel], scaling: ScalingConfig, rounds: int, times: int, scratch: str
) -> list[float]:
    """Wall seconds of the same trial through the other backend, as often; behind the others, on a Ray of its own."""
    trainer = XGBoostTrainer(scaling=scaling, hyperparameters=PAIR, backend="xgboost_ray")
    with trainer.gangs("other", channels) as gangs:
        other = RepeatedTrial(gangs, PAIR, rounds, f"{scratch}/xgboost-ray")
        other.start(trainer.workers)
        return [other.train().seconds for _ in range(times)]
