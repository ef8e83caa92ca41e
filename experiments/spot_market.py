"""A simulated spot market: the time lost to reclaimed machines, and the money saved, against on-demand.

    python -m experiments.spot_market [--seeds 20] [--unit-seconds 60] [--out DIR] [--quick]

Everything here is simulated but the decisions: controller, scheduler and ledger are the real ones, on gangs that train
nothing and have a clock of their own (`hpo.search.simulated_gangs`). No market's figures are used: the rates are
assumptions, from none to two reclaims an hour of a machine.

Each gang is one machine. It is reclaimed after a time that is drawn from an exponential distribution, by the seed and
the number of the machine; `NOTICE_SECONDS` before, it is given notice. Another takes its place at once, which is billed
and starts for `START_SECONDS`. A job runs in three ways: on machines that are never reclaimed, at full price; on spot
machines, where what is being trained ends with its next report when notice comes, is checkpointed and goes on
elsewhere; and on spot machines that go without being listened to, so that their trials train from their last rung
again. All three have to come to the same trials and the same winner.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group

from experiments.shared.benchmark import markdown, table, write
from experiments.workloads.empty_searches import RANGES, NoRecord, curve
from hpo.cli import errors_in_words
from hpo.ranges import decode, search_space
from hpo.search import Controller, Search, SimulatedGangs
from hpo.strategies import RandomSearch, SynchronousHyperBandScheduler, lay_out
from trainers.gangs import Event, GangEnded, GangUp, Served

NOTICE_SECONDS, START_SECONDS = 120.0, 90.0
RATES = (0.0, 0.1, 0.25, 0.5, 1.0, 2.0)
"""Reclaims an hour of a machine."""

TRIALS, UNITS, AT_ONCE, WORKERS, SEED = 30, 30, 4, 4, 1729
METRIC = "validation:auc"
HOUR = 3600.0


@dataclass(frozen=True, kw_only=True)
class Market:
    """A market's terms.

    Args:
        rate: reclaims an hour of a machine.
        seed: of the draws.
        listened: what is being trained when notice comes ends with its next report.
    """

    rate: float
    seed: int
    listened: bool


@dataclass(frozen=True, kw_only=True)
class Ran:
    """One simulated job.

    Args:
        hours: of wall time.
        worker_hours: billed.
        in_vain: units that were trained and lost, parts of one among them.
        reclaims: gangs that lost their machine, or left it, while the job ran.
        answer: where each trial stopped, and which won.
    """

    hours: float
    worker_hours: float
    in_vain: float
    reclaims: int
    answer: tuple[dict[str, int], str]


@dataclass(frozen=True, slots=True)
class Notice:
    """A machine is to be taken away."""

    gang: str


@dataclass(frozen=True, slots=True)
class Reclaim:
    """A machine is taken away."""

    gang: str


class SpotGangs(SimulatedGangs):
    """Gangs on machines of a market; notices and reclaims are among the events to come."""

    def __init__(self, market: Market, unit_seconds: float) -> None:
        super().__init__(
            curve,
            metric=METRIC,
            room=AT_ONCE * WORKERS,
            start_seconds=START_SECONDS,
            unit_seconds=lambda assignment: unit_seconds,
        )
        self.reclaims = 0
        self.in_vain = 0.0
        self.starts_in_vain = 0.0
        """Worker-seconds of machines that were reclaimed before their gang was up, which no ledger has."""
        self._market = market
        self._machines: set[str] = set()
        self._noticed: set[str] = set()

    def want(self, sizes: Mapping[int, int], seconds_left: float | None) -> Collection[str]:
        """See `SimulatedGangs.want`; each new gang's machine has its end drawn."""
        gone = super().want(sizes, seconds_left)
        for gang in sorted(self.sizes.keys() - self._machines):
            self._machines.add(gang)
            if self._market.rate:
                # By its number alone: the same machine is reclaimed after the same time, whatever the others do.
                lives = random.Random(f"{self._market.seed}/{gang}").expovariate(self._market.rate / HOUR)
                self._later(max(0.0, lives - NOTICE_SECONDS), Notice(gang))
                self._later(lives, Reclaim(gang))
        return gone

    def events(self, timeout: float) -> Sequence[Event]:
        """See `SimulatedGangs.events`."""
        [event] = super().events(timeout)
        happened: Any = event
        match happened:
            case Notice(gang):
                return self._notice(gang)
            case Reclaim(gang):
                return [self._end(gang)] if gang in self.sizes else []
            case GangUp() | Served() if event.gang in self._noticed:
                return [event, self._end(event.gang)]
        return [event]

    def _notice(self, gang: str) -> list[Event]:
        """A machine is left as soon as nothing is trained there, if somebody listens."""
        if gang not in self.sizes or not self._market.listened:
            return []
        self._noticed.add(gang)
        if gang in self._idle:
            return [self._end(gang)]
        self.halt(gang)
        return []

    def _end(self, gang: str) -> GangEnded:
        self.reclaims += 1
        if gang in self._serving:
            assignment, since = self._serving.pop(gang)
            self.in_vain += (self.now - since) / self._unit_seconds(assignment)
        elif gang not in self._idle:
            self.starts_in_vain += (self.now - self._started[gang]) * self.sizes[gang]
        del self.sizes[gang]
        self._idle.pop(gang, None)
        self._events = sorted(entry for entry in self._events if entry[2].gang != gang)
        return GangEnded(gang=gang, error="its machine was reclaimed")

    def _later(self, delay: float, event: Any) -> None:
        self._push(delay, event)


def run(market: Market, unit_seconds: float) -> Ran:
    """One job on a market's machines."""
    plan = lay_out(TRIALS, 1, UNITS)
    gangs = SpotGangs(market, unit_seconds)
    controller = Controller(
        Search(
            name="spot",
            metric=METRIC,
            mode="max",
            max_jobs=TRIALS,
            max_parallel_jobs=AT_ONCE,
            max_resource=UNITS,
            seed=SEED,
            storage_path="/nowhere",
            workers=lambda hyperparameters: WORKERS,
            untuned=False,
            max_attempts=1_000_000,  # A trial is not to blame for its machine.
        ),
        searcher=RandomSearch(search_space(RANGES), metric=METRIC, mode="max", seed=SEED),
        scheduler=SynchronousHyperBandScheduler(plan, metric=METRIC, mode="max"),
        decode=lambda suggested: decode(RANGES, suggested),
        gangs=gangs,
        record=NoRecord(),
        clock=gangs.clock,
    )
    controller.run()
    best = controller.best()
    assert best is not None, "the curve is finite"
    return Ran(
        hours=gangs.now / HOUR,
        worker_hours=(controller.ledger.total + gangs.starts_in_vain) / HOUR,
        in_vain=gangs.in_vain,
        reclaims=gangs.reclaims,
        answer=({name: trial.resource for name, trial in controller.runs.items()}, best.id),
    )


def compare(rates: Sequence[float], seeds: range, unit_seconds: float) -> dict[str, list[Ran]]:
    """By the name of a way to run, its jobs, one a seed; what is never reclaimed runs once.

    Raises:
        AssertionError: a job came to another answer.
    """
    straight = run(Market(rate=0.0, seed=0, listened=True), unit_seconds)
    found = {ON_DEMAND: [straight]}
    for rate in rates:
        for listened in (True, False) if rate else (True,):
            markets = [Market(rate=rate, seed=seed, listened=listened) for seed in (seeds if rate else seeds[:1])]
            jobs = [run(market, unit_seconds) for market in markets]
            assert all(job.answer == straight.answer for job in jobs), f"another answer at {rate} reclaims an hour"
            found[way(rate, listened)] = jobs
    return found


ON_DEMAND = "on-demand"


def way(rate: float, listened: bool) -> str:
    """A way to run, as tables name it."""
    if not rate:
        return "spot, never reclaimed"
    return f"spot, {rate:g} an hour, " + ("halted at the notice" if listened else "not listened to")


def summarized(found: Mapping[str, Sequence[Ran]], discount: float) -> list[dict[str, Any]]:
    """A row a way to run: means over its jobs, against the job on machines at full price, which cost 1 an hour."""
    [straight] = found[ON_DEMAND]
    rows = []
    for name, jobs in found.items():
        price = 1.0 if name == ON_DEMAND else 1.0 - discount
        hours = statistics.mean(job.hours for job in jobs)
        cost = price * statistics.mean(job.worker_hours for job in jobs)
        rows.append(
            {
                "way": name,
                "jobs": len(jobs),
                "hours": hours,
                "longest_hours": max(job.hours for job in jobs),
                "time_lost": hours / straight.hours - 1.0,
                "worker_hours": statistics.mean(job.worker_hours for job in jobs),
                "cost": cost,
                "saved": 1.0 - cost / straight.worker_hours,
                "reclaims": statistics.mean(job.reclaims for job in jobs),
                "units_in_vain": statistics.mean(job.in_vain for job in jobs),
            }
        )
    return rows


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The table of docs/guides/spot.md: what reclaims cost, and what is saved, by their rate."""
    rows = {row["way"]: row for row in result["ways"]}
    cells = []
    for rate in result["assumptions"]["rates"]:
        halted = rows[way(rate, True)]
        ended = rows[way(rate, False)] if rate else halted
        cells.append(
            (
                f"{rate:g}",
                *(f"{100 * of[what]:.1f}%" for of in (halted, ended) for what in ("time_lost", "saved")),
                f"{ended['units_in_vain']:.0f}",
            )
        )
    columns = (
        "reclaims an hour of a machine (simulated)",
        *("halted at the notice: time lost", "saved", "not listened to: time lost", "saved", "units lost"),
    )
    return {"rates": markdown(columns, cells)}


def _figures(job: Ran) -> dict[str, Any]:
    """A job for result.json, without its answer, which is that of all the others."""
    return {name: value for name, value in asdict(job).items() if name != "answer"}


def show(rows: Sequence[Mapping[str, Any]], unit_seconds: float, discount: float) -> Group:
    """The rows as a table, with what they stand on."""
    cells = [
        (
            row["way"],
            f"{row['hours']:.2f}",
            f"{row['longest_hours']:.2f}",
            f"{row['time_lost']:+.1%}",
            f"{row['cost']:.2f}",
            f"{row['saved']:.1%}",
            f"{row['reclaims']:.1f}",
            f"{row['units_in_vain']:.1f}",
        )
        for row in rows
    ]
    columns = ("machines", "hours", "longest", "time lost", "cost", "saved", "reclaims", "units lost")
    return Group(
        table("Simulated spot market: means of simulated jobs", columns, cells),
        f"Simulated: {TRIALS} trials of 1 to {UNITS} units of {unit_seconds:g} s, {AT_ONCE} gangs of {WORKERS} workers "
        f"on one machine each; a start takes {START_SECONDS:g} s, notice comes {NOTICE_SECONDS:g} s before a reclaim.",
        f"Costs are worker-hours, 1 each at full price and {1 - discount:g} each on spot machines; discount and "
        "rates are assumptions, no market's figures. All jobs came to the same trials and the same winner.",
    )


def main(
    seeds: Annotated[int, typer.Option(min=1, help="Markets drawn for each rate.")] = 20,
    unit_seconds: Annotated[float, typer.Option(min=1.0, help="What a unit of a trial takes on a gang.")] = 60.0,
    discount: Annotated[float, typer.Option(min=0.0, max=0.99, help="What spot machines cost less.")] = 0.7,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/spot-market"),
    quick: Annotated[bool, typer.Option(help="Two markets for each of two rates: to see that it works.")] = False,
) -> None:
    """Simulate what reclaimed machines cost a job in time, and what their price saves."""
    console = Console(highlight=False)
    rates, drawn = (RATES[:1] + RATES[-1:], range(2)) if quick else (RATES, range(seeds))
    found = compare(rates, drawn, unit_seconds)
    rows = summarized(found, discount)
    console.print(show(rows, unit_seconds, discount))
    result = {
        "simulated": True,
        "assumptions": {
            "unit_seconds": unit_seconds,
            "discount": discount,
            "notice_seconds": NOTICE_SECONDS,
            "start_seconds": START_SECONDS,
            "rates": rates,
            "seeds": len(drawn),
        },
        "ways": rows,
        "jobs": {name: [_figures(job) for job in jobs] for name, jobs in found.items()},
    }
    console.print(f"written to {write(out, result)}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
