"""Cost of the tuner itself, without training: time a decision and a durable batch, memory a trial, beside Optuna.

    python -m experiments.overhead [--trials 10000] [--optuna-seconds 20] [--out DIR] [--quick]

The work is that of `experiments.workloads.empty_searches`: the real tuner on gangs that answer at once, by two plans.

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
it, in WAL mode with synchronous=NORMAL: a commit survives the death of the process, not necessarily a power cut.

*Memory*, each search in a process of its own: the proportional set size (from /proc) that the largest search adds
over the smallest, by the trials it has more. The peak is that of the process.

*Optuna* does the same work through `ask`, `report`, `should_prune` and `tell`, on curves of the same form, in four
places: in memory, in SQLite as Optuna opens it (a commit is synchronised with the disk), in SQLite with the settings
above, and in its JournalStorage in a file. It commits each report before `report` returns; here a thread commits what
has come together meanwhile, so that a report is written a moment after it was decided upon. What one commit a report
costs here is measured beside. Each place is measured with every report made (NopPruner) and with its HyperbandPruner,
which stops trials, so that they report less often than 50 times. As many trials are done as fit into the seconds given,
but as many as the smallest search has in any case: those are the same reports in each place.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group

from experiments.baselines.optuna_studies import IN_MEMORY, PRUNERS, STORAGES, Study, blocks
from experiments.shared.benchmark import Target, apart, markdown, promised, promises, table, targets_to_json, write
from experiments.workloads.empty_searches import (
    AT_ONCE,
    BATCHES,
    PLANS,
    REPORTS,
    SEED,
    Batches,
    Searched,
    durable_batches,
    searches,
)
from hpo.cli import errors_in_words

EVERY = "every report"
DECISIONS = ("plan", "trials", "reports", "scheduler", "loop", "durable", "durable, wall", "peak, MB")
STUDIES = ("pruner", "study", "up to trial", "reports", "report and should_prune", "all calls", "all calls, wall")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Everything that was measured.

    Args:
        searches: by plan and number of trials, rising.
        batches: commits to a store that holds the largest.
        optuna: its studies.
    """

    searches: list[Searched]
    batches: Batches
    optuna: list[Study]

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
    *_, middle, largest = measured.of(EVERY)
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
            measured=measured.growth(EVERY),
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


def decisions(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The searches here."""
    return [
        (
            search["plan"],
            f"{search['trials']:,}",
            f"{search['reports']:,}",
            *(f"{search[name]:.1f}" for name in ("scheduler", "loop", "durable", "durable_wall")),
            f"{search['peak'] / 1e6:.0f}",
        )
        for search in result["searches"]
    ]


def beside(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """The same reports, none stopped, until all is written: here and in each of Optuna's studies."""
    smallest = next(search for search in result["searches"] if search["plan"] == EVERY)
    batches = result["batches"]
    rows = [
        ("here", "what came together", smallest["durable"], smallest["durable_wall"]),
        ("here, a report alone, without the search", "a report", batches["alone"], batches["alone_wall"]),
    ]
    for study in result["optuna"]:
        if study["plan"] == EVERY:
            first = study["blocks"][0]
            what = "nothing is committed" if study["storage"] == IN_MEMORY else "a report"
            rows.append((f"Optuna, {study['storage']}", what, first["all"], first["wall"]))
    return [(name, what, f"{processor:,.0f}", f"{wall:,.0f}") for name, what, processor, wall in rows]


def studies(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Optuna's studies as they grow."""
    return [
        (
            study["plan"],
            study["storage"],
            f"{block['trials']:,}",
            f"{block['reports']:,}",
            *(f"{block[name]:,.0f}" for name in ("asking", "all", "wall")),
        )
        for study in result["optuna"]
        for block in study["blocks"]
    ]


def batch_and_memory(result: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a batch takes, and a trial holds."""
    milliseconds = result["batches"]["milliseconds"]
    return [
        (
            f"a durable batch of {result['setting']['reports']} reports, median",
            f"{statistics.median(milliseconds):.1f} ms",
        ),
        ("nine in ten at most", f"{statistics.quantiles(milliseconds, n=10)[-1]:.1f} ms"),
        *((f"memory a trial, {plan}", f"{taken / 1e3:.1f} kB") for plan, taken in result["bytes_a_trial"].items()),
    ]


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/background/benchmarks.md."""
    return {
        "decisions": markdown(DECISIONS, decisions(result)),
        "batches": markdown(("", ""), batch_and_memory(result)),
        "beside": markdown(compared(result), beside(result)),
        "optuna": markdown(STUDIES, studies(result)),
        "promises": promised(result["targets"]),
    }


def compared(result: Mapping[str, Any]) -> tuple[str, ...]:
    """The columns of `beside`."""
    smallest = next(search for search in result["searches"] if search["plan"] == EVERY)
    return (f"every report of {smallest['trials']:,} trials", "a commit holds", "processor", "wall")


def show(measured: Measured) -> Group:
    """The tables that people look at."""
    made = result(measured)
    return Group(
        table("Microseconds a decision", DECISIONS, decisions(made)),
        "",
        table("", ("", ""), batch_and_memory(made)),
        "",
        table("Microseconds a report", compared(made), beside(made)),
        "",
        table("Optuna: microseconds a report", STUDIES, studies(made)),
        "",
        promises(targets(measured)),
    )


def main(
    trials: Annotated[int, typer.Option(min=100, help="Trials of the largest search.")] = 10_000,
    optuna_seconds: Annotated[float, typer.Option(help="For each of Optuna's studies.")] = 20.0,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/overhead"),
    quick: Annotated[bool, typer.Option(help="A hundred trials, a second of Optuna: to see that it works.")] = False,
) -> None:
    """Measure what the tuner costs without training: a decision, a durable batch, a trial's memory."""
    console = Console(highlight=False)
    largest = 100 if quick else trials
    seconds = 1.0 if quick else optuna_seconds
    with tempfile.TemporaryDirectory(prefix="warmband-overhead-") as scratch:
        found: list[Searched] = []
        for count in (largest // 100, largest // 10, largest):
            # The largest is long enough by itself.
            found += searches(count, scratch, repeats=1 if quick or count == largest else 3)
            console.print(f"{count} trials: {found[-1].durable:.1f} us a decision")
        batches = apart(durable_batches, f"{scratch}/{EVERY}-{largest}-0.db")
        optuna = []
        for plan in PRUNERS:
            for number, storage in enumerate(STORAGES):
                console.print(f"now Optuna, {plan}, {storage}")
                path = f"{scratch}/optuna-{plan}-{number}"
                study = apart(partial(blocks, seconds=seconds, least=largest // 100, most=largest), plan, storage, path)
                optuna.append(study)
    ordered = sorted(found, key=lambda search: (list(PLANS).index(search.plan), search.trials))
    measured = Measured(searches=ordered, batches=batches, optuna=optuna)
    console.print(show(measured))
    console.print(f"written to {write(out, result(measured))}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
