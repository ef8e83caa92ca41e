"""Reports a second into a store, from one driver and from several at once: SQLite beside PostgreSQL.

    python -m experiments.store_rate postgresql://me@host/empty [--out DIR]

Give an empty database: its jobs are made and deleted again. SQLite is measured beside it, in a file of its own; the
rounds take turns, so that what else the machine does weighs on both.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from experiments.shared.benchmark import markdown, write
from hpo.cli import errors_in_words
from hpo.record import JobRow, ReportRow, Store, TrialRow, explained, open_engine, shown
from trainers.errors import ConfigurationError

REPORTS_A_TRIAL = 100


def reports(job: str, count: int) -> Iterator[ReportRow]:
    for number in range(count):
        trial, step = divmod(number, REPORTS_A_TRIAL)
        metrics = {"validation:auc": 0.5 + step / 1000, "validation:logloss": 0.4, "train:auc": 0.6}
        yield ReportRow(job=job, trial_id=f"t{trial:04}", step=step, objective=0.5, metrics=metrics, at=time.time())


def drive(url: str, job: str, count: int, gate: Barrier) -> None:
    """One driver: all of its reports, as fast as they are taken."""
    with Store(url) as store:
        store.create_job(JobRow(name=job, created_at=time.time()))
        with store.writer(job) as writer:
            for trial in range(-(-count // REPORTS_A_TRIAL)):
                writer.trial(TrialRow(job=job, trial_id=f"t{trial:04}", number=trial))
            writer.flush()
            gate.wait(120)
            for row in reports(job, count):
                writer.report(row)
            writer.flush(600)
            gate.wait(600)


def rate(url: str, drivers: int, count: int) -> float:
    """Reports a second, of all drivers together, from the first report until the last is written."""
    spawn = multiprocessing.get_context("spawn")
    gate = spawn.Barrier(drivers + 1)
    names = [f"rate-{number}" for number in range(drivers)]
    processes = [spawn.Process(target=drive, args=(url, name, count, gate)) for name in names]
    for process in processes:
        process.start()
    gate.wait(120)
    began = time.perf_counter()
    gate.wait(600)
    seconds = time.perf_counter() - began
    for process in processes:
        process.join(120)
    with Store(url) as store:
        for name in names:
            if len(store.reports(name)) != count:
                raise SystemExit(f"{name} has {len(store.reports(name))} reports, not {count}")
            store.delete_job(name)
    return drivers * count / seconds


def server_version(url: str) -> str:
    """What the server calls itself."""
    engine = open_engine(url)
    try:
        with explained(shown(engine.url), "opened", ConfigurationError), engine.connect() as connection:
            return str(connection.scalar(sa.text("SHOW server_version")))
    finally:
        engine.dispose()


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The table of docs/guides/database.md: medians over rounds."""
    rows = []
    for drivers, found in result["rates"].items():
        medians = [statistics.median(rates) for rates in found.values()]
        ratio = f"{medians[1] / medians[0]:.2f}" if len(medians) > 1 else ""
        rows.append((f"{drivers} at once" if drivers != "1" else "1", *(f"{rate:,.0f}" for rate in medians), ratio))
    stores = list(next(iter(result["rates"].values())))
    columns = ("drivers", *(f"{store}, reports a second" for store in stores), "PostgreSQL to SQLite")
    said = f"{result['reports']:,} reports of each driver, medians of {len(found[stores[0]])} rounds in turns."
    return {"rates": markdown(columns, rows), "what": said}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", nargs="?", help="a PostgreSQL database's URL; nothing measures SQLite alone")
    parser.add_argument("--drivers", type=int, nargs="+", default=[1, 8], metavar="N", help="how many write at once")
    parser.add_argument("--reports", type=int, default=10_000, metavar="N", help="of each driver")
    parser.add_argument("--rounds", type=int, default=3, metavar="N", help="of which the median is shown")
    parser.add_argument("--out", type=Path, default=Path("results/store_rate"), help="folder for result.json")
    options = parser.parse_args()
    found: dict[int, dict[str, list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        stores = {"SQLite": f"sqlite:///{folder}/store.db"}
        if options.url:
            stores[f"PostgreSQL {server_version(options.url)}"] = options.url
        for drivers in options.drivers:
            found[drivers] = {name: [] for name in stores}
            for _ in range(options.rounds):
                for name, url in stores.items():
                    found[drivers][name].append(rate(url, drivers, options.reports))
            for name, rates in found[drivers].items():
                print(f"{drivers} drivers, {name}: {statistics.median(rates):,.0f} reports/s", flush=True)
    print(f"written to {write(options.out, {'reports': options.reports, 'rates': found})}")


if __name__ == "__main__":
    with errors_in_words():
        main()
