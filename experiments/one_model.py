"""XGBoost on several numbers of workers: how far their models are apart, and what finding common bins costs.

    python -m experiments.one_model [--rows 2000000] [--out DIR] [--quick]

Generated rows with weights, missing values and two columns of categories, in Parquet files, are trained on by gangs of
1, 2, 3 and 5 workers, in memory and on disk (external memory). All models predict the same rows. A worker's seconds at
the start of its gang stand beside those of the whole training without its rounds, which hold Ray's share too.

Then some tables of another size are trained on by one process, with the bins that are found here and with XGBoost's
own, from one `QuantileDMatrix`: the AUCs, and the seconds for bins and matrix.
"""

from __future__ import annotations

import logging
import os
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
import ray
import typer
from numpy.typing import NDArray
from ray.train import ScalingConfig
from rich.console import Console

from experiments.external.limited import LIMIT, NOTES, LimitedTrainer, notes
from experiments.shared.benchmark import Target, apart, markdown, promised, promises, table, targets_to_json, write
from hpo.cli import errors_in_words
from trainers import Channel, XGBoostTrainer
from trainers.gangs import alone

WORKERS = (1, 2, 3, 5)
NUMBERS, CODES = 18, 2
"""Columns of numbers, and of categories."""
STATIC = {"objective": "binary:logistic", "eval_metric": "auc", "max_depth": 6, "nthread": 1}
ROUNDS, PART, VALIDATION = 10, 250_000, 200_000
TABLES, TABLE_ROWS, TABLE_ROUNDS = 5, 600_000, 30
COLUMNS = ("workers", "rows", "AUC", "largest difference", "bins", "matrix", "bins, of the start")
AUC_COLUMNS = ("table", "AUC, bins as here", "AUC, XGBoost's bins", "bins and matrix here", "XGBoost's matrix")


@dataclass(frozen=True, kw_only=True)
class Run:
    """One training on a gang.

    Args:
        workers: of the gang.
        external: rows were on disk.
        auc: of the validation rows, after the last round.
        difference: the largest one from the first run's predictions.
        bins: seconds in which the slowest worker found bins.
        build: seconds in which the slowest worker made its matrices.
        start: seconds of the whole training without its rounds.
    """

    workers: int
    external: bool
    auc: float
    difference: float
    bins: float
    build: float
    start: float


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One table, trained on with the bins that are found here and with XGBoost's own.

    Args:
        here: the AUC with bins as here.
        theirs: the AUC with XGBoost's own bins.
        here_seconds: for bins and matrix.
        their_seconds: for XGBoost's matrix.
    """

    here: float
    theirs: float
    here_seconds: float
    their_seconds: float


def rows_of(seed: int, rows: int) -> pd.DataFrame:
    """Some rows: the same ones for the same seed."""
    random = np.random.default_rng(seed)
    numbers = random.standard_normal((rows, NUMBERS), np.float32)
    codes = random.integers(0, 12, (rows, CODES), np.int8)
    signal = numbers[:, 0] + numbers[:, 1] * numbers[:, 2] + np.abs(numbers[:, 3]) + (codes[:, 0] % 3 == 1)
    labels = (signal + random.standard_normal(rows, np.float32) > 1.1).astype(np.float32)
    numbers[:, 4] = np.exp(3 * numbers[:, 4])
    numbers[:, 5] = np.maximum(numbers[:, 5], 0)
    numbers[:, 3][random.random(rows) < 0.2] = np.nan
    frame = pd.DataFrame(numbers, columns=[f"x{place}" for place in range(NUMBERS)])
    names = pd.Index([f"kind {code}" for code in range(12)])
    for place in range(CODES):
        frame[f"c{place}"] = pd.Categorical.from_codes(codes[:, place], names)
    return frame.assign(y=labels, w=random.gamma(2.0, size=rows).astype(np.float32))


def channels(folder: Path, rows: int) -> dict[str, Channel]:
    """The rows in Parquet files."""
    (folder / "train").mkdir()
    for number, start in enumerate(range(0, rows, PART)):
        part = rows_of(number, min(PART, rows - start))
        part.to_parquet(folder / "train" / f"{number:03}.parquet", index=False, row_group_size=PART // 5)
    rows_of(1_000_000, VALIDATION).drop(columns="w").to_parquet(folder / "validation.parquet", index=False)
    categorical = [f"c{place}" for place in range(CODES)]
    return {
        "train": Channel.of(folder / "train", target="y", weight="w", categorical=categorical, name="train"),
        "validation": Channel.of(folder / "validation.parquet", target="y", categorical=categorical, name="validation"),
    }


def on_gang(
    opened: Mapping[str, Channel], folder: Path, workers: int, first: NDArray[np.float32] | None, *, external: bool
) -> tuple[Run, NDArray[np.float32]]:
    """One training, and its model's predictions, which are compared with those of the first one."""
    noted = Path(tempfile.mkdtemp(dir=folder))
    os.environ.update({NOTES: str(noted), LIMIT: ""})
    trainer = LimitedTrainer(
        scaling=ScalingConfig(num_workers=workers, resources_per_worker={"CPU": 1}),
        hyperparameters={**STATIC, "num_round": ROUNDS},
        external_memory=external,
    )
    began = time.perf_counter()
    result = trainer.fit(dict(opened), storage_path=str(folder / "models"))
    seconds = time.perf_counter() - began
    frame = rows_of(1_000_000, VALIDATION).drop(columns=["y", "w"])
    model = trainer.load_model(result.checkpoint)
    predicted = model.predict(trainer.matrix(model, frame))
    opening = [line["opened"] for line in notes(noted) if "opened" in line]
    run = Run(
        workers=workers,
        external=external,
        auc=result.metrics["validation:auc"],
        difference=0.0 if first is None else float(np.abs(predicted - first).max()),
        bins=max(steps["bins"] for steps in opening),
        build=max(steps["build"] for steps in opening),
        start=seconds - result.training_seconds,
    )
    return run, predicted


def both_bins(seed: int, rows: int, rounds: int) -> Pair:
    """Train one table with bins as here and with XGBoost's own, in this process."""
    import xgboost

    parts = {"train": rows_of(seed, rows), "validation": rows_of(seed + 1_000_000, VALIDATION)}
    opened = {name: Channel.of(part.drop(columns="w"), target="y", name=name) for name, part in parts.items()}
    hyperparameters = {**STATIC, "num_round": rounds, "seed": 0}
    trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=hyperparameters)
    with tempfile.TemporaryDirectory() as folder:
        result = trainer.fit(opened, storage_path=folder)
    program = trainer.program({"train": trainer.checked({"train": opened["train"]})["train"].place(0)})
    steps = program.open(alone(1))
    program.close()
    features = {name: part.drop(columns=["y", "w"]) for name, part in parts.items()}
    began = time.perf_counter()
    own = xgboost.QuantileDMatrix(features["train"], parts["train"]["y"], enable_categorical=True, nthread=1)
    their_seconds = time.perf_counter() - began
    scored = xgboost.DMatrix(features["validation"], parts["validation"]["y"], enable_categorical=True)
    by_hand = xgboost.train({**STATIC, "seed": 0}, own, rounds)
    theirs = float(by_hand.eval(scored).rpartition(":")[2])
    return Pair(
        here=result.metrics["validation:auc"],
        theirs=theirs,
        here_seconds=steps["bins"] + steps["build"],
        their_seconds=their_seconds,
    )


def targets(runs: Sequence[Run], pairs: Sequence[Pair]) -> list[Target]:
    """The promises, and what was measured of them."""
    lost = [pair.theirs - pair.here for pair in pairs]
    several = [run for run in runs if run.workers > 1]
    return [
        Target(
            promise="predictions of all models differ at most by",
            limit=1e-6,
            measured=max(run.difference for run in runs),
            unit="",
        ),
        Target(
            promise="AUC that XGBoost's own bins give more, on average",
            limit=0.0005,
            measured=statistics.fmean(lost),
            unit="",
            note=f"{min(lost):.5f} to {max(lost):.5f}",
        ),
        Target(
            promise="bins, of the start of a gang of several, median",
            limit=0.5,
            measured=statistics.median(run.bins / run.start for run in several),
            unit="x",
        ),
        Target(
            promise="bins and matrix here, of XGBoost's matrix, median",
            limit=1.0,
            measured=statistics.median(pair.here_seconds / pair.their_seconds for pair in pairs),
            unit="x",
        ),
    ]


def run_rows(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    """A line for each training on a gang."""
    return [
        (
            str(run.workers),
            "on disk" if run.external else "in memory",
            f"{run.auc:.6f}",
            f"{run.difference:.2g}",
            f"{run.bins:.1f} s",
            f"{run.build:.1f} s",
            f"{run.bins / run.start:.2f}",
        )
        for run in runs
    ]


def pair_rows(pairs: Sequence[Pair]) -> list[tuple[str, ...]]:
    """A line for each table that was trained on with both kinds of bins."""
    return [
        (
            str(number),
            f"{pair.here:.6f}",
            f"{pair.theirs:.6f}",
            f"{pair.here_seconds:.1f} s",
            f"{pair.their_seconds:.1f} s",
        )
        for number, pair in enumerate(pairs, 1)
    ]


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/background/benchmarks.md."""
    runs, pairs = [Run(**run) for run in result["runs"]], [Pair(**pair) for pair in result["pairs"]]
    largest = max(run.difference for run in runs)
    return {
        "runs": markdown(COLUMNS, run_rows(runs)),
        "pairs": markdown(AUC_COLUMNS, pair_rows(pairs)),
        "promises": promised(result["targets"]),
        "short": f"{result['rows']:,} rows: predictions differ by {largest:.2g} at most",
    }


def main(
    rows: Annotated[int, typer.Option(min=1, help="Rows to train on.")] = 2_000_000,
    quick: Annotated[bool, typer.Option("--quick", help="Few rows and two numbers of workers.")] = False,
    folder: Annotated[Path | None, typer.Option(help="For the rows; a temporary one by default.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/one_model"),
) -> None:
    """Measure how far XGBoost's models of several numbers of workers are apart."""
    console = Console(highlight=False)
    rows = min(rows, 50_000) if quick else rows
    pairs = [
        apart(both_bins, 2_000_000 + number, TABLE_ROWS, 2 if quick else TABLE_ROUNDS)
        for number in range(1 if quick else TABLES)
    ]
    console.print(table("Bins as here, and XGBoost's own", AUC_COLUMNS, pair_rows(pairs)), "")
    os.environ.setdefault("RAY_worker_niceness", "0")
    ray.init(address="local", num_cpus=16, include_dashboard=False, logging_level=logging.ERROR, log_to_driver=False)
    runs: list[Run] = []
    first: NDArray[np.float32] | None = None
    with tempfile.TemporaryDirectory(prefix="one-model-", dir=folder) as scratch:
        os.environ["TMPDIR"] = scratch
        opened = channels(Path(scratch), rows)
        for external in (False, True):
            for workers in WORKERS[:2] if quick else WORKERS:
                run, predicted = on_gang(opened, Path(scratch), workers, first, external=external)
                first = predicted if first is None else first
                runs.append(run)
    kept = targets(runs, pairs)
    console.print(table(f"{rows:,} rows of {NUMBERS + CODES} columns", COLUMNS, run_rows(runs)), "", promises(kept))
    result = {
        "rows": rows,
        "runs": [asdict(run) for run in runs],
        "pairs": [asdict(pair) for pair in pairs],
        "targets": targets_to_json(kept),
    }
    console.print(f"written to {write(out, result)}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
