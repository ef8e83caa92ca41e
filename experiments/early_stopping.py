"""What Hyperband saves and what it loses: against the same configurations, all run to the end.

    python -m experiments.early_stopping [--seeds 20] [--data-dir DIR] [--out DIR]

Each seed draws 30 configurations of XGBoost on three workers. They are tuned twice on the same warm gang: with
Hyperband's brackets for 1 to 30 rounds, and through the same rungs with nothing cut, each trial to 30 rounds. A trial's
model depends on its configuration, seed and rungs alone, so a trial that both run to the end is the same model in both,
and what differs is due to early stopping. Compared are the rounds used, and the two winners on the validation rows that
chose them and on test rows that did not.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer
from ray.train import ScalingConfig
from rich.console import Console
from rich.table import Table

from experiments.benchmark import write
from experiments.boosting import RANGES
from hpo.controller import Controller
from hpo.hyperband import Bracket, Cut, Plan, lay_out
from hpo.ledger import Entry
from hpo.ranges import decode
from hpo.search import Search, TrialRun
from hpo.strategies import make_strategy
from hpo.uncertainty import auc_standard_error
from trainers import Channel, XGBoostTrainer
from trainers.assignment import Assignment, Event, GangEnded, GangLost, GangUp, Report
from trainers.cluster import cluster
from trainers.datasets import Dataset, find, load
from trainers.ray_gangs import RayGangs

JOBS, ROUNDS, WORKERS = 30, 30, 3
OBJECTIVE, TEST = "validation:auc", "test:auc"
STATIC = {"objective": "binary:logistic", "eval_metric": "auc", "eta": 0.3, "colsample_bylevel": 0.5}


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one search found: the winner's AUC on validation and test rows, and the rounds used by all trials."""

    validation: float
    test: float
    rounds: int
    seconds: float


class KeptGangs:
    """The gangs of many searches, one after another: closing a search leaves them up for the next."""

    def __init__(self, gangs: RayGangs) -> None:
        self._gangs = gangs
        self._up: dict[str, GangUp] = {}
        self._waiting: list[Event] = []
        self.starting = 0
        self.held_since = gangs.held_since
        self.want = gangs.want
        self.halt = gangs.halt
        self.recycle = gangs.recycle

    def give_back(self) -> Collection[str]:
        """None: what one search has no use for is the next one's."""
        return ()

    def assign(self, gang: str, assignment: Assignment) -> None:
        """Hands an assignment to a gang."""
        self._gangs.assign(gang, assignment)

    def events(self, timeout: float) -> Sequence[Event]:
        """The gangs that are up already, then what happens."""
        waiting, self._waiting = self._waiting, []
        events = list(self._gangs.events(0 if waiting else timeout))
        for event in events:
            if isinstance(event, GangUp):
                self._up[event.gang] = event
            elif isinstance(event, GangLost | GangEnded):
                self._up.pop(event.gang, None)
        return [*waiting, *events]

    def close(self, *, now: bool = False) -> None:
        """Keeps the gangs; the next search is told that they are up."""
        self._waiting = list(self._up.values())


class Memory:
    """A record that remembers each trial's last report."""

    stop_requested = False

    def __init__(self) -> None:
        self.last: dict[str, Report] = {}

    def trial(self, run: TrialRun) -> None:
        """A trial's state changed; not kept."""

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """Keeps the last."""
        self.last[run.id] = reports[-1]

    def ledger(self, entries: list[Entry]) -> None:
        """Worker-seconds were billed; not kept."""

    def rung(self, cut: Cut) -> None:
        """A rung was decided; not kept."""

    def progress(self, controller: Controller) -> None:
        """The loop went round."""


def search(name: str, plan: Plan, seed: int, gangs: KeptGangs, storage_path: str) -> Found:
    """Runs one search and returns what it found."""
    memory = Memory()
    strategy = make_strategy(plan, RANGES, metric=OBJECTIVE, mode="max", seed=seed)
    controller = Controller(
        Search(
            name=name,
            metric=OBJECTIVE,
            mode="max",
            max_jobs=JOBS,
            max_parallel_jobs=1,
            max_resource=ROUNDS,
            seed=seed,
            storage_path=storage_path,
            static=STATIC,
            workers=lambda hyperparameters: WORKERS,
            untuned=False,
        ),
        searcher=strategy.searcher,
        scheduler=strategy.scheduler,
        decode=lambda suggested: decode(RANGES, suggested),
        gangs=gangs,
        record=memory,
    )
    started = time.perf_counter()
    controller.run()
    best = controller.best()
    assert best is not None, "every trial of XGBoost reports an AUC"
    return Found(
        validation=best.value,
        test=memory.last[best.id].metrics[TEST],
        rounds=controller.trained,
        seconds=time.perf_counter() - started,
    )


def nothing_cut(plan: Plan) -> Plan:
    """The same brackets and rungs, with every trial going on to the end."""
    brackets = [Bracket(rungs=b.rungs, sizes=(b.sizes[0],) * len(b.rungs)) for b in plan.brackets]
    return Plan(brackets=tuple(brackets), max_resource=plan.max_resource)


def compare(dataset: Dataset, seeds: Sequence[int], storage_path: str, console: Console) -> list[tuple[Found, Found]]:
    """Both searches for each seed, on one warm gang: (Hyperband, all to the end)."""
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=WORKERS), hyperparameters=STATIC)
    plan = lay_out(JOBS, 1, ROUNDS)
    plans = {"hyperband": plan, "all": nothing_cut(plan)}
    pairs = []
    with cluster(WORKERS, console.print):
        channels = {"train": dataset.train, "validation": dataset.validation, "test": dataset.test}
        placed = {name: Channel.of(frame, name=name).place(WORKERS) for name, frame in channels.items()}
        gangs = RayGangs("early-stopping", lambda workers: trainer.program(placed), trainer.scaling)
        kept = KeptGangs(gangs)
        try:
            for seed in seeds:
                found = [search(f"{kind}-{seed}", plan, seed, kept, storage_path) for kind, plan in plans.items()]
                pairs.append((found[0], found[1]))
                console.print(
                    f"seed {seed}: {found[0].rounds} rounds of {found[1].rounds}, validation "
                    f"{found[0].validation - found[1].validation:+.4f}, test {found[0].test - found[1].test:+.4f}"
                )
        finally:
            gangs.close()
    return pairs


def show(dataset: Dataset, pairs: list[tuple[Found, Found]], console: Console) -> dict[str, float]:
    """Prints the comparison; returns its means."""
    table = Table(title=f"{dataset.title}: {JOBS} trials, {len(pairs)} seeds", title_justify="left", box=None)
    for column in ("", "mean", "spread over seeds", "standard error of the mean", "standard error of one AUC"):
        table.add_column(column, justify="left" if not column else "right")
    means = {}
    rows = {
        "share of rounds": [hyperband.rounds / full.rounds for hyperband, full in pairs],
        "validation AUC, Hyperband": [hyperband.validation for hyperband, _ in pairs],
        "validation AUC, all to the end": [full.validation for _, full in pairs],
        "validation AUC, difference": [hyperband.validation - full.validation for hyperband, full in pairs],
        "test AUC, Hyperband": [hyperband.test for hyperband, _ in pairs],
        "test AUC, all to the end": [full.test for _, full in pairs],
        "test AUC, difference": [hyperband.test - full.test for hyperband, full in pairs],
        "seconds, Hyperband / all": [hyperband.seconds / full.seconds for hyperband, full in pairs],
    }
    for name, values in rows.items():
        mean = statistics.fmean(values)
        spread = statistics.stdev(values) if len(values) > 1 else math.nan
        one = ""
        if "AUC" in name and "difference" not in name:
            labels = (dataset.validation if name.startswith("validation") else dataset.test)["y"]
            one = f"{auc_standard_error(mean, int(labels.sum()), int((labels == 0).sum())):.4f}"
        means[name] = mean
        table.add_row(name, f"{mean:.4f}", f"{spread:.4f}", f"{spread / math.sqrt(len(values)):.4f}", one)
    console.print(table)
    return means


def main(
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 0.")] = 20,
    data_dir: Annotated[str | None, typer.Option(help="Folder that holds the bank marketing data.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for result.json and the checkpoints.")] = None,
) -> None:
    """Compare Hyperband with running every trial to the end, over many seeds."""
    console = Console(highlight=False)
    name = "bank-marketing" if find("bank-marketing", data_dir) else "bank-marketing-synthetic"
    dataset = load(name, data_dir=data_dir)
    folder = out or Path("results/early_stopping")
    pairs = compare(dataset, range(seeds), str(folder.absolute() / "checkpoints"), console)
    means = show(dataset, pairs, console)
    result = {
        "dataset": dataset.name,
        "synthetic": dataset.synthetic,
        "means": means,
        "seeds": [{"hyperband": asdict(hyperband), "all": asdict(full)} for hyperband, full in pairs],
    }
    console.print(f"written to {write(folder, result)}")


if __name__ == "__main__":
    typer.run(main)
