"""What the tuner itself costs, without training: time a decision and a durable batch, memory a trial, beside Optuna.

    python -m experiments.overhead [--trials 10000] [--optuna-seconds 30] [--out DIR] [--quick]

Gangs that answer at once (`hpo.simulation`) stand in for workers; searcher, scheduler, controller, ledger and store are
the real ones. Two plans: "Hyperband", `lay_out(trials, 1, 50)`, and "every report", `run_all(trials, 50)`, in which
each of the trials reports 50 times and none is stopped.

A *decision* is one report and all that follows from it. Its time is measured three ways, each for three numbers of
trials, so that growth shows:

- scheduler: `on_trial_result` alone, on trials that were added beforehand;
- loop: a whole search divided by its reports: configurations and trials made, assignments handed out and taken in,
  seconds billed, the simulation's own work included; the record keeps nothing;
- durable: the same with the real record in SQLite, until every row is committed.

These are seconds of the processor, of all threads together, since other work on a shared machine lengthens the wall
time, which is given beside. A search writes from a thread of its own, so both are near each other on an idle machine.

A *durable batch* is what one assignment of 50 reports writes (50 reports, its trial, its billed seconds), in wall time
from queueing it until SQLite has committed it, in a store that holds the largest search. SQLite runs as Warmband opens
it: a commit survives the death of the process, not necessarily a power cut.

*Memory*, each search in a process of its own: the proportional set size (from /proc) that the largest search adds
over the smallest, by the trials it has more. The peak is that of the process.

*Optuna* does the same work through `ask`, `report`, `should_prune` and `tell` with its HyperbandPruner, on curves of
the same form: processor time of `report` and `should_prune` together, for as many trials as fit into the seconds given,
in memory and on SQLite. Its pruner stops trials, so that they report less often than 50 times.
"""

from __future__ import annotations

import math
import random
import resource
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from ray.tune.experiment import Trial
from rich.console import Console, Group

from experiments.benchmark import Target, apart, promises, table, targets_to_json, write
from experiments.looking import held
from hpo import ContinuousParameter, IntegerParameter
from hpo.controller import Controller
from hpo.hyperband import Cut, Plan, lay_out, run_all
from hpo.ledger import Entry
from hpo.random_search import RandomSearch
from hpo.ranges import ParameterRange, decode, search_space
from hpo.record import JobRecord
from hpo.scheduler import RESOURCE, SynchronousHyperBandScheduler
from hpo.search import Search, TrialRun
from hpo.simulation import SimulatedGangs
from hpo.store import JobRow, LedgerRow, ReportRow, Store, TrialRow
from trainers.assignment import Assignment, Report

REPORTS, AT_ONCE, BATCHES, SEED = 50, 8, 200, 1729
WRITTEN_SECONDS = 300.0
METRIC = "validation:auc"
RANGES: dict[str, ParameterRange] = {
    "eta": ContinuousParameter(0, 1),
    "alpha": ContinuousParameter(0, 2),
    "max_depth": IntegerParameter(1, 10),
}
PLANS: dict[str, Callable[[int], Plan]] = {
    "Hyperband": lambda trials: lay_out(trials, 1, REPORTS),
    "every report": lambda trials: run_all(trials, REPORTS),
}


@dataclass(frozen=True, kw_only=True)
class Searched:
    """One search on gangs that answer at once.

    Args:
        plan: which of `PLANS`.
        trials: in all.
        reports: in all.
        scheduler: processor microseconds a report in `on_trial_result` alone.
        loop: the same in the whole loop, recorded nowhere.
        durable: the same until all is in SQLite.
        durable_wall: wall microseconds of the same.
        memory: bytes of the process at the end of the loop, more than before it.
        peak: bytes of the process at most, its imports included.
    """

    plan: str
    trials: int
    reports: int
    scheduler: float
    loop: float
    durable: float
    durable_wall: float
    memory: int
    peak: int


@dataclass(frozen=True, kw_only=True)
class Block:
    """Some trials of Optuna's, one after another.

    Args:
        trials: done when it ended, those before it included.
        reports: in the block.
        microseconds: of the processor for a `report` and `should_prune`, mean over the block.
    """

    trials: int
    reports: int
    microseconds: float


class NoRecord:
    """A record that keeps nothing."""

    stop_requested = False

    def trial(self, run: TrialRun) -> None: ...

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None: ...

    def ledger(self, entries: list[Entry]) -> None: ...

    def rung(self, cut: Cut) -> None: ...

    def progress(self, controller: Controller) -> None: ...


class NoController:
    """What a scheduler alone may call."""

    def stop_trial(self, trial: Trial) -> None: ...


# ---- here


def curve(assignment: Assignment, step: int) -> float:
    """A learning curve that rises towards a value of the trial's own."""
    return float(assignment.hyperparameters["eta"]) * (1 - 0.9**step)


def searches(trials: int, scratch: str, repeats: int) -> list[Searched]:
    """Every plan with so many trials, each in processes of its own; the middle one of `repeats` by its durable time."""
    found = []
    for plan in PLANS:
        runs = [apart(search, plan, trials, f"{scratch}/{plan}-{trials}-{number}.db") for number in range(repeats)]
        found.append(sorted(runs, key=lambda run: run.durable)[repeats // 2])
    return found


def search(plan: str, trials: int, path: str) -> Searched:
    """One search, three times: its scheduler alone, recorded nowhere, and recorded in SQLite."""
    layout = PLANS[plan](trials)
    deciding, reports = schedule(layout)
    before, began = held(), time.process_time()
    controller = run(layout, NoRecord())
    looped, memory = time.process_time() - began, held() - before
    assert controller.trained == reports, "both did the same work"
    del controller
    began, began_wall = time.process_time(), time.perf_counter()
    record(layout, path)
    durable, durable_wall = time.process_time() - began, time.perf_counter() - began_wall
    return Searched(
        plan=plan,
        trials=trials,
        reports=reports,
        scheduler=1e6 * deciding / reports,
        loop=1e6 * looped / reports,
        durable=1e6 * durable / reports,
        durable_wall=1e6 * durable_wall / reports,
        memory=memory,
        peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    )


def schedule(plan: Plan) -> tuple[float, int]:
    """Seconds in `on_trial_result` over all reports of a plan, and how many there were."""
    scheduler = SynchronousHyperBandScheduler(plan, metric=METRIC, mode="max")
    trials = [Trial("warmband", trial_id=f"search-{number}", stub=True) for number in range(plan.trials)]
    for trial in trials:
        scheduler.on_trial_add(NoController(), trial)
    heights = {trial.trial_id: random.Random(trial.trial_id).random() for trial in trials}
    reached = dict.fromkeys(heights, 0)
    seconds, reports = 0.0, 0
    while (trial := scheduler.choose_trial_to_run(NoController())) is not None:
        name = trial.trial_id
        steps = range(reached[name] + 1, scheduler.milestone(trial) + 1)
        results = [{METRIC: heights[name] * (1 - 0.9**step), RESOURCE: step} for step in steps]
        began = time.process_time()
        for result in results:
            scheduler.on_trial_result(NoController(), trial, result)
        seconds += time.process_time() - began
        reached[name] = steps[-1]
        reports += len(results)
    return seconds, reports


def run(plan: Plan, record: Any) -> Controller:
    """A whole search."""
    gangs = SimulatedGangs(curve, metric=METRIC, unit_seconds=lambda assignment: 1.0)
    controller = Controller(
        Search(
            name="search",
            metric=METRIC,
            mode="max",
            max_jobs=plan.trials,
            max_parallel_jobs=AT_ONCE,
            max_resource=plan.max_resource,
            seed=SEED,
            storage_path="/nowhere",
            untuned=False,
        ),
        searcher=RandomSearch(search_space(RANGES), metric=METRIC, mode="max", seed=SEED),
        scheduler=SynchronousHyperBandScheduler(plan, metric=METRIC, mode="max"),
        decode=lambda suggested: decode(RANGES, suggested),
        gangs=gangs,
        record=record,
        clock=gangs.clock,
    )
    controller.run()
    return controller


def record(plan: Plan, path: str) -> None:
    """A whole search, until it is in SQLite."""
    with Store(f"sqlite:///{path}") as store:
        store.create_job(JobRow(name="search", created_at=0.0))
        with store.writer("search") as writer:
            run(plan, JobRecord(writer, METRIC))
            writer.flush(WRITTEN_SECONDS)


def durable_batches(path: str) -> list[float]:
    """Milliseconds that each of `BATCHES` assignments takes to be committed to a store."""
    taken = []
    with Store(f"sqlite:///{path}") as store, store.writer("search") as writer:
        for number in range(BATCHES):
            name = f"batch-{number}"
            rows = [
                ReportRow(job="search", trial_id=name, step=step, objective=0.5, metrics={METRIC: 0.5}, at=0.0)
                for step in range(1, REPORTS + 1)
            ]
            began = time.perf_counter()
            writer.report(*rows)
            writer.trial(TrialRow(job="search", trial_id=name, number=number, resource=REPORTS, objective=0.5))
            writer.ledger(
                *(
                    LedgerRow(job="search", trial_id=name, gang="gang0", kind=kind, worker_seconds=1.0, at=0.0)
                    for kind in ("training", "checkpointing", "idle")
                )
            )
            writer.flush()
            taken.append(1e3 * (time.perf_counter() - began))
    return taken


# ---- Optuna


def optuna_blocks(seconds: float, most: int, path: str | None) -> list[Block]:
    """As many of `most` trials as `seconds` allow, in blocks that grow tenfold; in memory where there is no path."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        storage=optuna.storages.RDBStorage(f"sqlite:///{path}") if path else None,
        direction="maximize",
        sampler=optuna.samplers.RandomSampler(seed=SEED),
        pruner=optuna.pruners.HyperbandPruner(min_resource=1, max_resource=REPORTS, reduction_factor=3),
        study_name="search",
    )
    deadline = time.perf_counter() + seconds
    blocks: list[Block] = []
    done, end = 0, min(10, most)
    while done < most and time.perf_counter() < deadline:
        spent, reports = 0.0, 0
        while done < end and time.perf_counter() < deadline:
            trial = study.ask()
            height = trial.suggest_float("eta", 0, 1)
            trial.suggest_float("alpha", 0, 2)
            trial.suggest_int("max_depth", 1, 10)
            value, pruned = math.nan, False
            for step in range(1, REPORTS + 1):
                value = height * (1 - 0.9**step)
                began = time.process_time()
                trial.report(value, step)
                pruned = trial.should_prune()
                spent += time.process_time() - began
                reports += 1
                if pruned:
                    break
            if pruned:
                study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            else:
                study.tell(trial, value)
            done += 1
        blocks.append(Block(trials=done, reports=reports, microseconds=1e6 * spent / reports))
        end = min(most, end * 10 if done == end else end)
    return blocks


# ---- what came out


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Everything that was measured.

    Args:
        searches: by plan and number of trials, rising.
        batches: milliseconds of each durable batch.
        optuna: blocks of trials, by where its study is.
    """

    searches: list[Searched]
    batches: list[float]
    optuna: dict[str, list[Block]]

    def of(self, plan: str) -> list[Searched]:
        """A plan's searches, the smallest first."""
        return [search for search in self.searches if search.plan == plan]

    def bytes_a_trial(self, plan: str) -> float:
        """What the largest search holds more than the smallest, by the trials it has more."""
        smallest, *_, largest = self.of(plan)
        return (largest.memory - smallest.memory) / (largest.trials - smallest.trials)

    def growth(self, plan: str) -> float:
        """How many times as long a durable decision takes in the largest search as in the middle one.

        In the smallest, what happens once a search weighs most.
        """
        *_, middle, largest = self.of(plan)
        return largest.durable / middle.durable


def targets(measured: Measured) -> list[Target]:
    """The promises, and what was measured of each."""
    every = "every report"
    *_, middle, largest = measured.of(every)
    return [
        Target(
            promise="a decision, durable",
            limit=50,
            measured=largest.durable,
            unit="us",
            note=f"{largest.trials} trials of {REPORTS} reports; {largest.durable_wall:.0f} us of wall time",
        ),
        Target(
            promise="no growth with the number of trials",
            limit=1.2,
            measured=measured.growth(every),
            unit="times",
            note=f"{largest.trials} trials against {middle.trials}; a fifth is left to noise",
        ),
    ]


def result(measured: Measured) -> dict[str, Any]:
    """Everything measured, for result.json."""
    return {
        "setting": {"reports": REPORTS, "at_once": AT_ONCE, "batches": BATCHES, "seed": SEED},
        **asdict(measured),
        "bytes_a_trial": {plan: measured.bytes_a_trial(plan) for plan in PLANS},
        "targets": targets_to_json(targets(measured)),
    }


def show(measured: Measured) -> Group:
    """The tables that people look at."""
    ours = [
        (
            search.plan,
            f"{search.trials:,}",
            f"{search.reports:,}",
            f"{search.scheduler:.1f}",
            f"{search.loop:.1f}",
            f"{search.durable:.1f}",
            f"{search.durable_wall:.1f}",
            f"{search.peak / 1e6:.0f}",
        )
        for search in measured.searches
    ]
    theirs = [
        (where, f"{block.trials:,}", f"{block.reports:,}", f"{block.microseconds:.0f}")
        for where, blocks in measured.optuna.items()
        for block in blocks
    ]
    decile = statistics.quantiles(measured.batches, n=10)[-1]
    memory = ", ".join(f"{measured.bytes_a_trial(plan):,.0f} bytes a trial with {plan!r}" for plan in PLANS)
    columns = ("plan", "trials", "reports", "scheduler", "loop", "durable", "durable, wall", "peak, MB")
    return Group(
        table("Microseconds a decision", columns, ours),
        f"A durable batch of {REPORTS} reports: median {statistics.median(measured.batches):.1f} ms, "
        f"nine in ten within {decile:.1f} ms",
        f"Memory: {memory}\n",
        table("Optuna: report and should_prune", ("study", "up to trial", "reports", "microseconds"), theirs),
        "",
        promises(targets(measured)),
    )


def main(
    trials: Annotated[int, typer.Option(min=100, help="Trials of the largest search.")] = 10_000,
    optuna_seconds: Annotated[float, typer.Option(help="For each of Optuna's two studies.")] = 60.0,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/overhead"),
    quick: Annotated[bool, typer.Option(help="A hundred trials, a second of Optuna: to see that it works.")] = False,
) -> None:
    """Measure what the tuner costs without training: a decision, a durable batch, a trial's memory."""
    console = Console(highlight=False)
    largest = 100 if quick else trials
    with tempfile.TemporaryDirectory(prefix="warmband-overhead-") as scratch:
        found: list[Searched] = []
        for count in (largest // 100, largest // 10, largest):
            # The largest is long enough by itself.
            found += searches(count, scratch, repeats=1 if quick or count == largest else 3)
            console.print(f"{count} trials: {found[-1].durable:.1f} us a decision")
        batches = apart(durable_batches, f"{scratch}/every report-{largest}-0.db")
        console.print("now Optuna")
        seconds = 1.0 if quick else optuna_seconds
        studies = {"in memory": None, "SQLite": f"{scratch}/optuna.db"}
        optuna = {where: apart(optuna_blocks, seconds, largest, path) for where, path in studies.items()}
    ordered = sorted(found, key=lambda search: (list(PLANS).index(search.plan), search.trials))
    measured = Measured(searches=ordered, batches=batches, optuna=optuna)
    console.print(show(measured))
    console.print(f"written to {write(out, result(measured))}")


if __name__ == "__main__":
    typer.run(main)
