"""Speed of the console in Chromium on a large job that is under way: interactions, and the delay of updates.

    python -m experiments.console_speed [--trials 10000] [--reports 100] [--quick] [--out DIR]

A record of SQLite is filled with a job, and a server in a process of its own serves it. An interaction ends with the
second frame behind it, as the browser's own clock has it; an update begins before its row is written.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from experiments.shared.benchmark import markdown, write
from hpo.cli import errors_in_words
from hpo.record import JobRow, LedgerRow, LineRow, ReportRow, Store, TrialRow

METRIC, JOB, GANGS = "validation:auc", "large", 16

SERVER = """
import sys
from pathlib import Path
from hpo.serve import ServeSettings, run
run(ServeSettings(port=0, store=sys.argv[1], folder=Path(sys.argv[2])), lambda line: print(line, flush=True))
"""

TIMED = """async ([act, argument]) => {
  const table = document.querySelector(".table[aria-label=Trials]");
  const acts = {
    search: () => {
      const search = document.querySelector("input[type=search]");
      search.value = argument;
      search.dispatchEvent(new Event("input"));
    },
    sort: () => table.querySelectorAll(".head button")[argument].click(),
    scroll: () => { table.scrollTop = argument * (table.scrollHeight - table.clientHeight); },
    hover: () => {
      const canvas = document.querySelector(".chart canvas + canvas");
      const box = canvas.getBoundingClientRect();
      const at = { clientX: box.left + argument * box.width, clientY: box.top + box.height / 3, bubbles: true };
      canvas.dispatchEvent(new PointerEvent("pointermove", at));
    },
  };
  const began = performance.now();
  acts[act]();
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return performance.now() - began;
}"""


def fill(store: Store, trials: int, reports: int) -> None:
    """Puts a job into the record that is under way."""
    random, now = np.random.default_rng(1), time.time()
    spec: dict[str, Any] = {
        "strategy": "Random",
        "objective_metric_name": METRIC,
        "objective_type": "Maximize",
        "objective_value": "last",
        "random_seed": 1,
        "tags": None,
        "max_jobs": trials + 100,
        "max_parallel_jobs": GANGS,
        "max_runtime_in_seconds": None,
        "early_stopping_type": "Off",
        "strategy_request": None,
        "parameter_ranges": {},
        "estimator": {"trainer": "XGBoostTrainer", "hyperparameters": {}},
        "hyperparameter_ranges": {},
    }
    store.create_job(JobRow(name=JOB, status="InProgress", created_at=now - trials, spec=spec))
    with store.writer(JOB) as writer:
        for number in range(trials):
            eta = float(random.uniform(0.01, 1))
            curve = 0.8 - (eta - 0.3) ** 2 - 0.3 * np.exp(-np.arange(1, reports + 1) * eta / 5)
            trial, at = f"{JOB}-{number:05d}", now - trials + number
            row = TrialRow(
                job=JOB,
                trial_id=trial,
                number=number,
                status="Completed",
                hyperparameters={"eta": eta, "depth": number % 9},
                resource=reports,
                objective=float(curve[-1]),
                started_at=at,
                ended_at=at + GANGS,
            )
            writer.trial(row)
            writer.report(
                *(
                    ReportRow(job=JOB, trial_id=trial, step=step, objective=value, metrics={METRIC: value}, at=at)
                    for step, value in enumerate(map(float, curve), 1)
                )
            )
            gang = f"gang-{number % GANGS}"
            writer.ledger(
                LedgerRow(
                    job=JOB, trial_id=trial, gang=gang, kind="training", worker_seconds=GANGS, workers=1, at=at + GANGS
                )
            )
            if number % 200 == 199:
                writer.flush()
        writer.flush()


def interact(page: Page, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each kind of interaction."""
    taken: dict[str, list[float]] = {"search": [], "sort": [], "scroll": [], "hover": []}
    for number in range(rounds):
        for act, argument in (
            ("search", ["eta<0.2", "large-001", "completed", ""][number % 4]),
            ("sort", number % 4),
            ("scroll", (number * 0.37) % 1),
            ("hover", 0.2 + (number * 0.13) % 0.7),
        ):
            taken[act].append(page.evaluate(TIMED, [act, argument]))
    return taken


def updates(page: Page, store: Store, rounds: int) -> list[float]:
    """Seconds from before a row is written until it is on the page."""
    taken = []
    with store.writer(JOB) as writer:
        for number in range(rounds):
            text, began = f"line {number} of {rounds}", time.perf_counter()
            writer.line(LineRow(job=JOB, text=text, at=time.time()))
            writer.flush()
            there = "text => document.querySelector('.log').textContent.includes(text)"
            page.wait_for_function(there, arg=text, timeout=60_000)
            taken.append(time.perf_counter() - began)
            time.sleep(0.3)
    return taken


def measure(link: str, store: Store, rounds: int) -> dict[str, Any]:
    """Opens the job's page and measures on it."""
    with sync_playwright() as playwright:
        names = ("chromium", "chromium-browser", "google-chrome")
        path = next((found for name in names if (found := shutil.which(name))), None)
        if path is None:
            raise SystemExit(f"no Chromium; install one of {', '.join(names)}")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.goto(link)
        began = time.perf_counter()
        page.goto(f"{link.partition('/login')[0]}/#/jobs/{JOB}")
        page.locator(".table[aria-label=Trials] .rows a").first.wait_for(timeout=120_000)
        opened = time.perf_counter() - began
        page.wait_for_timeout(5000)  # The curves of the first time are drawn.
        taken, delays = interact(page, rounds), updates(page, store, rounds)
        browser.close()
    return {"opened_seconds": opened, "interactions_ms": taken, "update_seconds": delays}


def p95(values: list[float]) -> float:
    return sorted(values)[int(0.95 * (len(values) - 1))]


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The table of docs/guides/console.md."""
    rows = [
        (act, f"{statistics.median(each):.0f} ms", f"{p95(each):.0f} ms")
        for act, each in result["interactions_ms"].items()
    ]
    delays = [1000 * each for each in result["update_seconds"]]
    rows.append(("update", f"{statistics.median(delays):.0f} ms", f"{p95(delays):.0f} ms"))
    return {"speed": markdown(("", "median", "p95"), rows)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10_000, metavar="N")
    parser.add_argument("--reports", type=int, default=100, metavar="N", help="of each trial")
    parser.add_argument("--rounds", type=int, default=40, metavar="N", help="of each interaction")
    parser.add_argument("--quick", action="store_true", help="100 trials of 10 reports, 5 rounds")
    parser.add_argument("--out", type=Path, default=Path("results/console_speed"), help="folder for result.json")
    options = parser.parse_args()
    if options.quick:
        options.trials, options.reports, options.rounds = 100, 10, 5
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WARMBAND_HOME"] = folder
        url = f"sqlite:///{folder}/store.db"
        with Store(url) as store:
            fill(store, options.trials, options.reports)
            command = [sys.executable, "-c", SERVER, url, folder]
            server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            try:
                assert server.stdout is not None
                server.stdout.readline()
                link = server.stdout.readline().strip().partition(": ")[2]
                found = measure(link, store, options.rounds)
            finally:
                server.terminate()
                server.wait(30)
    result = {"trials": options.trials, "reports": options.reports, **found}
    print(page_tables(result)["speed"])
    print(f"the page opened in {found['opened_seconds']:.1f} s; written to {write(options.out, result)}")


if __name__ == "__main__":
    with errors_in_words():
        main()
