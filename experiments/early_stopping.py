"""Gain and loss by Hyperband: against the same configurations run to the end, all of them and fewer.

    python -m experiments.early_stopping [--seeds 20] [--data-dir DIR] [--out DIR]

Each seed draws 30 configurations of XGBoost on three workers. They are tuned three times on the same warm gang: with
Hyperband's brackets for 1 to 30 rounds; by plain random search for as many rounds, which are enough for the first few
of them, each trained to 30 rounds; and all to 30 rounds. A trial goes through the same rungs in each. Its model depends
on its configuration, seed and rungs alone, so that a trial that runs to the end is the same model in all three, and
what differs is which trials do. A fourth search is Hyperband as it is where nothing is said: 30 configurations that a
model suggests, in brackets of its own. Compared are the rounds used, and the winners on the validation rows that chose
them and on test rows that did not.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from ray.train import ScalingConfig
from rich.console import Console

from experiments.shared.benchmark import markdown, table, write
from experiments.shared.blog import RANGES, marketing
from experiments.shared.scores import Scores, configurations, difference, told, unbeaten
from experiments.workloads.empty_searches import NoRecord
from hpo.cli import errors_in_words
from hpo.ranges import decode
from hpo.search import Controller, Search, TrialRun, auc_standard_error
from hpo.strategies import Bracket, HyperbandStrategy, Plan, Prepared, Task, at_random, lay_out
from hpo.text import count
from trainers import Channel, XGBoostTrainer, storage
from trainers.cluster import cluster
from trainers.datasets import Dataset, load
from trainers.gangs import Assignment, Event, GangEnded, GangLost, Gangs, GangUp, RayGangs, Report

JOBS, ROUNDS, WORKERS = 30, 30, 3
OBJECTIVE, TEST = "validation:auc", "test:auc"
STATIC = {"objective": "binary:logistic", "eval_metric": "auc", "eta": 0.3, "colsample_bylevel": 0.5}


class Way(StrEnum):
    """How configurations are searched."""

    MODEL = "Hyperband, with a model"
    HYPERBAND = "Hyperband, random"
    EQUAL = "random, as many rounds"
    ALL = "all to the end"


@dataclass(frozen=True, kw_only=True)
class Found:
    """What one search found.

    Args:
        validation: the winner's AUC on the rows that chose it.
        test: its AUC on rows that did not.
        configurations: that were tried.
        rounds: that they used together.
        seconds: of wall time, on a gang that was up.
    """

    validation: float
    test: float
    configurations: int
    rounds: int
    seconds: float


Pairs = Sequence[Mapping[Way, Found]]
"""What each seed came to."""


class KeptGangs:
    """The gangs of many searches, one after another: closing a search leaves them up for the next."""

    def __init__(self, gangs: Gangs) -> None:
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


class LastReports(NoRecord):
    """A record that keeps the last report of each trial."""

    def __init__(self) -> None:
        self.last: dict[str, Report] = {}

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        self.last[run.id] = reports[-1]


def search(
    name: str,
    plan: Plan,
    seed: int,
    gangs: Gangs,
    storage_path: str,
    workers: int = WORKERS,
    prepare: Callable[[Task], Prepared] = at_random,
) -> Found:
    """Runs one search and returns what it found.

    Args:
        name: of its trials.
        plan: its brackets.
        seed: of configurations and trainings.
        gangs: that train.
        storage_path: folder for checkpoints; it is made where it is not there.
        workers: of a gang.
        prepare: makes the searcher and the scheduler.
    """
    storage.make_folder(storage_path)
    kept = LastReports()
    strategy = prepare(Task(plan=plan, ranges=RANGES, metric=OBJECTIVE, mode="max", seed=seed))
    controller = Controller(
        Search(
            name=name,
            metric=OBJECTIVE,
            mode="max",
            max_jobs=plan.trials,
            max_parallel_jobs=1,
            max_resource=plan.max_resource,
            seed=seed,
            storage_path=storage_path,
            static=STATIC,
            workers=lambda hyperparameters: workers,
            untuned=False,
        ),
        searcher=strategy.searcher,
        scheduler=strategy.scheduler,
        decode=lambda suggested: decode(RANGES, suggested),
        gangs=gangs,
        record=kept,
    )
    started = time.perf_counter()
    controller.run()
    best = controller.best()
    assert best is not None, "every trial of XGBoost reports an AUC"
    return Found(
        validation=best.value,
        test=kept.last[best.id].metrics[TEST],
        configurations=plan.trials,
        rounds=controller.trained,
        seconds=time.perf_counter() - started,
    )


def nothing_cut(plan: Plan, trials: int) -> Plan:
    """The first trials of a plan, through the rungs that they have there, all going on to the end."""
    brackets = []
    for bracket in plan.brackets:
        size = min(bracket.sizes[0], trials - sum(before.sizes[0] for before in brackets))
        if size:
            brackets.append(Bracket(rungs=bracket.rungs, sizes=(size,) * len(bracket.rungs)))
    return Plan(brackets=tuple(brackets), max_resource=plan.max_resource)


def each_way(plan: Plan, seed: int, gangs: Gangs, storage_path: str, workers: int = WORKERS) -> dict[Way, Found]:
    """One seed's searches; random search has as many configurations as Hyperband's rounds pay for.

    Args:
        plan: Hyperband's.
        seed: of configurations and trainings.
        gangs: that train.
        storage_path: for checkpoints.
        workers: of a gang.
    """

    def found(way: Way, plan: Plan) -> Found:
        return search(f"{way.name.lower()}-{seed}", plan, seed, gangs, storage_path, workers)

    learning = HyperbandStrategy(max_resource=plan.max_resource, min_resource=1)
    own = learning.plan(RANGES, plan.trials, None)
    cut = found(Way.HYPERBAND, plan)
    enough = configurations(cut.rounds, plan.max_resource)
    return {
        Way.MODEL: search(f"model-{seed}", own, seed, gangs, storage_path, workers, learning.prepare),
        Way.HYPERBAND: cut,
        Way.EQUAL: found(Way.EQUAL, nothing_cut(plan, enough)),
        Way.ALL: found(Way.ALL, nothing_cut(plan, plan.trials)),
    }


def compare(dataset: Dataset, seeds: Sequence[int], storage_path: str, console: Console) -> list[dict[Way, Found]]:
    """All searches of each seed, on one warm gang."""
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=WORKERS), hyperparameters=STATIC)
    plan = lay_out(JOBS, 1, ROUNDS)
    made = []
    with cluster(WORKERS, console.print):
        channels = {"train": dataset.train, "validation": dataset.validation, "test": dataset.test}
        placed = {name: Channel.of(frame, name=name).place(WORKERS) for name, frame in channels.items()}
        gangs = RayGangs(
            "early-stopping", lambda workers: trainer.program(placed), trainer.scaling, notify=console.print
        )
        kept = KeptGangs(gangs)
        try:
            for seed in seeds:
                made.append(each_way(plan, seed, kept, storage_path))
                ways = [f"{way}: {found.rounds} rounds, {found.validation:.4f}" for way, found in made[-1].items()]
                console.print(f"seed {seed}, validation AUC. {'; '.join(ways)}", soft_wrap=True)
        finally:
            gangs.close()
    return made


# ---- what came out


def result(dataset: Dataset, found: Pairs) -> dict[str, Any]:
    """Everything measured, for result.json."""

    def one_auc(channel: str) -> float:
        labels = getattr(dataset, channel)["y"]
        mean = statistics.fmean(getattr(ways[Way.ALL], channel) for ways in found)
        return auc_standard_error(mean, int(labels.sum()), int((labels == 0).sum()))

    whole = {
        "dataset": dataset.name,
        "title": dataset.title,
        "synthetic": dataset.synthetic,
        "workers": WORKERS,
        "rounds": ROUNDS,
        "standard_error_of_one": {channel: one_auc(channel) for channel in ("validation", "test")},
        "seeds": [{way.name.lower(): asdict(each) for way, each in ways.items()} for ways in found],
    }
    return {**whole, "verdict": verdict(whole)}


def verdict(result: Mapping[str, Any]) -> str:
    """What Hyperband's rounds bought, beside as many rounds of random search and beside all to the end."""
    found = _seeds(result)
    equal = _against(result, Way.EQUAL, "validation")
    model = _against(result, Way.ALL, "validation", Way.MODEL)
    tested = _against(result, Way.ALL, "test", Way.MODEL)
    fewer = _counts([ways[Way.EQUAL].configurations for ways in found])
    return (
        f"{result['title']}, {count(len(found), 'seed')}: for {_share(found):.1%} of the rounds, the validation AUC of "
        f"the best of Hyperband over random configurations minus that of all {found[0][Way.ALL].configurations} "
        f"configurations run to the end is {told(_against(result, Way.ALL, 'validation'))}. Minus that of plain random "
        f"search for as many rounds, the first {fewer} of these configurations, it is {told(equal)}"
        f"{': at equal rounds, it does not beat random search here' if unbeaten(equal) else ''}. With a model, for "
        f"{_share(found, Way.MODEL):.1%} of the rounds, the validation AUC minus that of all to the end is "
        f"{told(model)}; on test rows it is {told(tested)}."
    )


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/benchmarks.md, by name, from result.json."""
    columns = ("", "validation AUC", "test AUC")
    found = _seeds(result)
    return {
        "verdict": verdict(result),
        "share": f"{_share(found):.1%}",
        "row_error": f"{result['standard_error_of_one']['validation']:.3f}",
        "model_share": f"{_share(found, Way.MODEL):.1%}",
        "against_all": told(_against(result, Way.ALL, "validation")),
        "against_equal": told(_against(result, Way.EQUAL, "validation")),
        "ways": markdown(("", *Way), _ways(result)),
        "differences": markdown(columns, _differences(result)),
    }


def _ways(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """What each way used and found: AUCs are means over the seeds with the standard error of that mean."""
    found = _seeds(result)

    def values(of: str) -> list[list[float]]:
        return [[getattr(ways[way], of) for ways in found] for way in Way]

    rounds = values("rounds")
    means = [statistics.fmean(each) for each in rounds]
    made: list[tuple[str, list[str]]] = [
        ("configurations", [_counts(each) for each in values("configurations")]),
        ("rounds", [_counts(each) for each in rounds]),
        ("of all rounds", [f"{mean / max(means):.1%}" for mean in means]),
    ]
    for channel, error in result["standard_error_of_one"].items():
        name = f"{channel} AUC (standard error of one: {error:.3f})"
        made.append((name, [_mean(Scores(values=tuple(each))) for each in values(channel)]))
    made.append(
        ("seconds on a gang that is up, median", [f"{statistics.median(each):.1f}" for each in values("seconds")])
    )
    return [(name, *cells) for name, cells in made]


def _mean(scores: Scores) -> str:
    return f"{scores.mean:.4f}" + ("" if scores.error is None else f" ± {scores.error:.4f}")


def _counts(values: Sequence[float]) -> str:
    """A count, or from the least to the most of the seeds."""
    least, most = min(values), max(values)
    return f"{least:.0f}" if least == most else f"{least:.0f} to {most:.0f}"


def _differences(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    return [
        (f"{one} minus {other}", *(told(_against(result, other, channel, one)) for channel in ("validation", "test")))
        for one in (Way.HYPERBAND, Way.MODEL)
        for other in (Way.EQUAL, Way.ALL)
    ]


def _against(result: Mapping[str, Any], way: Way, channel: str, of: Way = Way.HYPERBAND) -> Scores:
    """One way's AUCs minus another's, a pair a seed."""
    found = _seeds(result)
    one, other = ([getattr(ways[each], channel) for ways in found] for each in (of, way))
    return difference(one, other, result["standard_error_of_one"][channel])


def _share(found: Pairs, way: Way = Way.HYPERBAND) -> float:
    """The rounds of a way, of those of all configurations run to the end."""
    return sum(ways[way].rounds for ways in found) / sum(ways[Way.ALL].rounds for ways in found)


def _seeds(result: Mapping[str, Any]) -> list[dict[Way, Found]]:
    return [{way: Found(**ways[way.name.lower()]) for way in Way} for ways in result["seeds"]]


def main(
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds, from 0.")] = 20,
    data_dir: Annotated[str | None, typer.Option(help="Folder that holds the bank marketing data.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for result.json and the checkpoints.")] = None,
) -> None:
    """Compare Hyperband with random search, for as many rounds and for all of them, over many seeds."""
    console = Console(highlight=False)
    name = marketing(data_dir)
    dataset = load(name, data_dir=data_dir)
    folder = out or Path("results/early_stopping")
    found = compare(dataset, range(seeds), str(folder.absolute() / "checkpoints"), console)
    came = result(dataset, found)
    console.print(table(f"{dataset.title}: means over {seeds} seeds", ("", *Way), _ways(came)))
    console.print(f"\n{came['verdict']}\n")
    console.print(f"written to {write(folder, came)}", soft_wrap=True)


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
