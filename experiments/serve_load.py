"""Load on the server beside a running job: clients that follow it, and others that describe and list.

    python -m experiments.serve_load [--clients 200] [--rate 50] [--trials 250] [--out DIR]

A job of XGBoost runs in a process of its own, first alone and then under the load, in turns; all share the machine, the
clients as well. Every client counts the reports that it was told, and has to have those of the record.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.shared.benchmark import markdown, write
from hpo.cli import errors_in_words
from hpo.record import Store

JOB = """
import sys
import numpy as np, pandas as pd
from hpo import ContinuousParameter, HyperparameterTuner
from trainers import Channel, ScalingConfig, XGBoostTrainer
random = np.random.default_rng(0)
x = random.normal(size=(20_000, 20))
frame = pd.DataFrame(x).assign(y=(x[:, 0] + random.normal(size=len(x)) > 0).astype(float))
frame.columns = [str(name) for name in frame.columns]
trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters={
    "objective": "binary:logistic", "eval_metric": "auc", "num_round": 40, "nthread": 1})
tuner = HyperparameterTuner(trainer, "validation:auc", {"eta": ContinuousParameter(0.01, 0.5)}, strategy="Random",
    max_jobs=int(sys.argv[2]), random_seed=1, store=sys.argv[1], console=False)
tuner.fit({name: Channel.of(part, target="y") for name, part in
           (("train", frame[:15_000]), ("validation", frame[15_000:]))}, job_name=sys.argv[3])
"""

SERVER = """
import sys
from pathlib import Path
from hpo.serve import ServeSettings, run
settings = ServeSettings(port=0, store=sys.argv[1], folder=Path(sys.argv[2]), streams_of_one=2000)
run(settings, lambda line: print(line, flush=True))
"""

TOLD_SECONDS = 60.0
"""How long after the job's end clients may wait for what others were told; what comes later counts as lost."""


async def follow(port: int, token: str, job: str, seen: set[tuple[str, int]]) -> None:
    """One client that follows a job until it is cancelled."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 24)
    head = f"GET /api/jobs/{job}/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n"
    writer.write(head.encode())
    try:
        kind = b""
        async for line in reader:
            if line.startswith(b"event: "):
                kind = line[7:].strip()
            elif kind == b"reports" and line.startswith(b"data: "):
                told = json.loads(line[6:])
                seen.update(zip(told["trial"], told["step"], strict=True))
    finally:
        writer.close()


async def ask(port: int, token: str, path: str, taken: list[float]) -> None:
    """One request on a connection of its own."""
    began = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
    writer.write(head.encode())
    answer = await reader.read()
    writer.close()
    if not answer.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"{path}: {answer[:200]!r}")
    taken.append(time.perf_counter() - began)


async def load(port: int, token: str, job: str, options: argparse.Namespace, running: subprocess.Popen[str]) -> Any:
    """The load, until the job has ended; returns seconds of requests and what each client was told."""
    seen: list[set[tuple[str, int]]] = [set() for _ in range(options.clients)]
    clients = [asyncio.create_task(follow(port, token, job, each)) for each in seen]
    paths = [f"/api/jobs/{job}", "/api/jobs", f"/api/jobs/{job}/trials", f"/api/jobs/{job}/summary"]
    await asyncio.sleep(3.0)  # All of them connect at once, which is another load than the one that is measured.
    taken: list[float] = []
    asked: list[asyncio.Task[None]] = []
    began = time.perf_counter()
    while running.poll() is None or len(asked) < len(paths):
        asked.append(asyncio.create_task(ask(port, token, paths[len(asked) % len(paths)], taken)))
        await asyncio.sleep(max(0.0, began + len(asked) / options.rate - time.perf_counter()))
    await asyncio.gather(*asked)
    await asyncio.sleep(2.0)
    deadline = time.monotonic() + TOLD_SECONDS
    while lost(seen) and time.monotonic() < deadline:
        await asyncio.sleep(0.5)
    for client in clients:
        client.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    return taken, seen


def lost(seen: Sequence[set[tuple[str, int]]]) -> int:
    """How many reports clients were not told that another was, over all clients."""
    whole = set[tuple[str, int]]().union(*seen)
    return sum(len(whole - each) for each in seen)


def job_process(url: str, trials: int, name: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", JOB, url, str(trials), name], text=True)


def wait_until_there(url: str, name: str, running: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    with Store(url) as store:
        while name not in [job.name for job in store.jobs()]:
            if running.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{name} did not begin")
            time.sleep(0.1)


def wall_seconds(url: str, name: str) -> float:
    with Store(url) as store:
        job = store.job(name)
        return float((job.ended_at or 0.0) - job.created_at)


def measure(url: str, port: int, token: str, trials: int, options: argparse.Namespace) -> dict[str, Any]:
    """One round: the job alone, and the job under the load."""
    number = time.time_ns() % 10**9
    alone, loaded = f"alone-{number}", f"loaded-{number}"
    if job_process(url, trials, alone).wait():
        raise SystemExit(f"{alone} has failed")
    running = job_process(url, trials, loaded)
    wait_until_there(url, loaded, running)
    taken, seen = asyncio.run(load(port, token, loaded, options, running))
    with Store(url) as store:
        there = {(row.trial_id, row.step) for row in store.reports(loaded)}
    return {
        "requests": len(taken),
        "p50": statistics.median(taken),
        "p99": sorted(taken)[int(0.99 * len(taken))],
        "lost": lost(seen),
        "reports": len(there),
        "told": len(set().union(*seen)),
        "alone_seconds": wall_seconds(url, alone),
        "loaded_seconds": wall_seconds(url, loaded),
    }


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The table of docs/guides/serve.md."""
    rounds: Sequence[Mapping[str, Any]] = result["rounds"]
    rows = [
        (
            f"{each['requests']:,}",
            f"{1000 * each['p50']:.0f} ms",
            f"{1000 * each['p99']:.0f} ms",
            f"{each['lost']:,}",
            f"{each['loaded_seconds'] / each['alone_seconds']:.2f}",
        )
        for each in rounds
    ]
    columns = ("requests", "p50", "p99", "reports lost", "job's time to that without")
    return {"load": markdown(columns, rows)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=200, metavar="N", help="that follow the job")
    parser.add_argument("--rate", type=float, default=50.0, metavar="N", help="requests a second beside them")
    parser.add_argument("--trials", type=int, default=250, metavar="N", help="of the job: about a minute")
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    parser.add_argument("--out", type=Path, default=Path("results/serve_load"), help="folder for result.json")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["WARMBAND_HOME"] = folder
        url = f"sqlite:///{folder}/store.db"
        command = [sys.executable, "-c", SERVER, url, folder]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline().strip().rpartition(":")[2])
            server.stdout.readline()  # The link by which a browser logs in.
            token = server.stdout.readline().split()[-1]
            found = []
            for _ in range(options.rounds):
                found.append(measure(url, port, token, options.trials, options))
                print(found[-1], flush=True)
        finally:
            server.terminate()
            server.wait(30)
    print(f"written to {write(options.out, {'clients': options.clients, 'rate': options.rate, 'rounds': found})}")


if __name__ == "__main__":
    with errors_in_words():
        main()
