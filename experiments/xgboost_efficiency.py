"""Cost of distributing XGBoost through Warmband beside XGBoost itself: time, exactness, memory.

    python -m experiments.xgboost_efficiency [--repeat 100] [--data-dir DIR] [--out DIR] [--quick]

On the bank marketing data, its train and validation rows repeated. Every worker has one thread.

*Share*: a tuning job (Hyperband, 30 trials of at most 30 rounds, two workers, rows 100 times) whose workers note the
seconds that they spend within XGBoost's functions that train, predict, evaluate and add up over workers
(`experiments/workloads/timed_trainer.py`), waiting for each other in them included, and nothing else. Their sum over
all workers is divided by the worker-seconds that the ledger billed: by all of them, the start of the gang's processes
and the loading of rows included, which is the promise; and by those billed since the gang was up, beside it.

*By hand*: one trial of 30 rounds on a gang that is up, from handing out the assignment until its result is there, its
model written; against `xgb.train` on as many plain processes, which XGBoost's `RabitTracker` and `CommunicatorContext`
connect, from telling them to train until all have answered, the model written. Rows are read and matrices built before,
in both; parameters, the evaluation of a worker's share of the validation rows by logloss after each round, threads,
seed and the processes' niceness are the same (Ray's workers are nice to others), and so have to be the curves. The two
take turns, and the promise is on the median of the ratios within a turn. The same trial runs through the backend
"xgboost_ray" as often, its own start of actors included, which it repeats for each trial.

*Evaluation*: one of 16 workers, simulated in this process (`experiments/workloads/shared_evaluation.py`): the processor
seconds of a round on its share of the rows, and of evaluating its share of a fifth as many, here and by hand, all ways
in every round; and what of either XGBoost's prediction of the new tree takes, and would take if the tree had one split.

*Exactness*: the AUC that 1, 2 and 3 workers report after 10 rounds, against scikit-learn's on the whole validation set
with the model that they wrote.

*Memory*: a job of 30 trials of one round on three workers with `--repeat` rows, in a process of its own that is looked
at twice a second. "Own" memory is what /proc/PID/smaps_rollup calls Pss_Anon and Pss_File: private pages and a share of
libraries, without the pages of Ray's object store, which are counted once, on their own. A worker's is the median of
the looks while the last twenty trials trained. The machine's peak sums the driver, all that it started, Ray's processes
among them, and the object store. The driver's growth is between the end of the tenth trial and that of the last.
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from ray.train import ScalingConfig
from rich.console import Console, Group

from experiments.baselines.trial_by_turns import Turns, turns
from experiments.shared.benchmark import Target, apart, markdown, promised, promises, table, targets_to_json, write
from experiments.shared.blog import marketing
from experiments.workloads import shared_evaluation
from experiments.workloads.shared_evaluation import Evaluating
from experiments.workloads.timed_job import AT_ONCE, SEED, STATIC, Memory, Share, memory, share
from hpo.cli import errors_in_words
from trainers import Channel, XGBoostTrainer
from trainers.datasets import load


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How large each part is.

    Args:
        share_repeat: of the rows in the job whose share is measured.
        share_trials: of that job.
        rounds: of its longest trial, and of the trials that are compared.
        pair_repeat: of the rows in these.
        pairs: how often they take turns.
        memory_trials: of the job whose memory is measured.
        evaluated_rounds: that are timed where a worker of many is simulated, on the rows of `share_repeat`.
    """

    share_repeat: int = 100
    share_trials: int = 30
    rounds: int = 30
    pair_repeat: int = 10
    pairs: int = 11
    memory_trials: int = 30
    evaluated_rounds: int = 30


QUICK = Scale(share_repeat=1, share_trials=3, rounds=3, pair_repeat=1, pairs=3, memory_trials=12, evaluated_rounds=3)


# ---- exactness


def exactness(name: str, data_dir: str | None, scratch: str, workers: Sequence[int] = (1, 2, 3)) -> dict[int, float]:
    """How far the reported AUC is from scikit-learn's, by number of workers."""
    import xgboost
    from sklearn.metrics import roc_auc_score

    dataset = load(name, data_dir=data_dir)
    whole = Channel.of(dataset.validation).read_whole()
    matrix = xgboost.DMatrix(whole.features, feature_names=list(whole.feature_names or ()))
    found = {}
    for count in workers:
        trainer = XGBoostTrainer(
            scaling=ScalingConfig(num_workers=count), hyperparameters={**STATIC, "num_round": 10, "max_depth": 6}
        )
        given = {"train": dataset.train, "validation": dataset.validation}
        trained = trainer.fit(given, storage_path=f"{scratch}/{count}", seed=SEED)
        exact = roc_auc_score(whole.labels, trained.model().predict(matrix))
        found[count] = abs(trained.metrics["validation:auc"] - exact)
    return found


# ---- what came out


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Everything that was measured; `exactness` is the largest error of the AUC by number of workers."""

    share: Share
    turns: Turns
    exactness: dict[int, float]
    memory: Memory
    evaluating: Evaluating


def targets(measured: Measured) -> list[Target]:
    """The promises, and what was measured of each."""
    share, turns, memory, evaluating = measured.share, measured.turns, measured.memory, measured.evaluating
    spread = ", ".join(f"{ratio:.3f}" for ratio in statistics.quantiles(turns.ratios, n=4))
    return [
        Target(
            promise="billed worker-seconds inside XGBoost",
            limit=0.90,
            measured=share.whole,
            unit="of all",
            at_least=True,
            note=f"{share.since_up:.3f} since the gang was up; a round took {1e3 * share.round_seconds:.0f} ms",
        ),
        Target(
            promise="a trial, over XGBoost by hand",
            limit=1.05,
            measured=statistics.median(turns.ratios),
            unit="times",
            note=f"quartiles of {len(turns.ratios)} turns: {spread}",
        ),
        Target(
            promise="AUC off scikit-learn's",
            limit=1e-6,
            measured=max(measured.exactness.values()),
            unit="",
            note=f"{', '.join(map(str, measured.exactness))} workers",
        ),
        Target(
            promise="a worker's own memory",
            limit=memory.shard / 1e6 + 400,
            measured=max(memory.steady) / 1e6,
            unit="MB",
            note=f"its float32 shard, {memory.shard / 1e6:.0f} MB, and 400 MB",
        ),
        Target(promise="the machine's peak", limit=8, measured=memory.peak / 1e9, unit="GB"),
        Target(
            promise=f"the driver's growth over {memory.trials} trials",
            limit=1,
            measured=100 * (memory.driver[1] / memory.driver[0] - 1),
            unit="%",
            note=f"from {memory.driver[0] / 1e6:.0f} MB; a copy of the rows would be as much again",
        ),
        Target(
            promise=f"evaluation, of a round on {evaluating.shares} workers",
            limit=0.10,
            measured=evaluating.part("here"),
            unit="of a round",
            note=f"by hand {evaluating.part('by hand'):.3f}; AUC {evaluating.part('here, AUC'):.3f}",
        ),
    ]


def result(measured: Measured, dataset: Mapping[str, Any]) -> dict[str, Any]:
    """Everything measured, for result.json."""
    return {
        "dataset": dict(dataset),
        "setting": {"static": STATIC, "seed": SEED, "gangs": AT_ONCE},
        **asdict(measured),
        "targets": targets_to_json(targets(measured)),
    }


def page_tables(result: Mapping[str, Any]) -> dict[str, str]:
    """The tables of docs/background/benchmarks.md, each below a line that says of what it is."""
    measured = Measured(
        share=Share(**result["share"]),
        turns=Turns(**result["turns"]),
        exactness={int(workers): error for workers, error in result["exactness"].items()},
        memory=Memory(**{**result["memory"], "driver": tuple(result["memory"]["driver"])}),
        evaluating=Evaluating(**result["evaluating"]),
    )
    made = {name: f"{title}:\n\n{markdown(columns, rows)}" for name, (title, columns, rows) in _parts(measured).items()}
    return {
        **made,
        "promises": promised(result["targets"]),
        "ratio": f"{statistics.median(measured.turns.ratios):.2f} times",
    }


def show(measured: Measured) -> Group:
    """The tables that people look at."""
    tables = [(table(*part), "") for part in _parts(measured).values()]
    return Group(*(line for lines in tables for line in lines), promises(targets(measured)))


def _parts(measured: Measured) -> dict[str, tuple[str, Sequence[str], list[tuple[str, ...]]]]:
    """By the name of a part: what it is of, columns and rows."""
    share, turns, memory, evaluating = measured.share, measured.turns, measured.memory, measured.evaluating
    took = f"{1e3 * share.round_seconds:.0f} ms a round"
    return {
        "share": (
            f"A job of {share.rounds} rounds on {share.workers} workers, {share.rows:,} rows to train on, {took}",
            ("", "worker-seconds"),
            [
                ("inside XGBoost", f"{share.inside:.1f}"),
                *((f"billed: {kind}", f"{seconds:.1f}") for kind, seconds in share.billed.items()),
                ("inside XGBoost, of all billed", f"{share.whole:.1%}"),
                ("inside XGBoost, of those billed since the gang was up", f"{share.since_up:.1%}"),
            ],
        ),
        "turns": (
            f"A trial of {turns.rounds} rounds on {turns.workers} workers, {turns.rows:,} rows to train on, "
            f"{len(turns.ratios)} turns; losses of the two differed by {turns.difference:.1g} at most",
            ("seconds", "median", "least", "most"),
            [
                (who, *(f"{number:.3f}" for number in (statistics.median(seconds), min(seconds), max(seconds))))
                for who, seconds in turns.seconds.items()
            ],
        ),
        "evaluation": (
            f"A round on one of {evaluating.shares} workers, simulated: training its share of {evaluating.rows:,} rows "
            f"took {1e3 * evaluating.update:.1f} ms, and evaluating its share of {evaluating.evaluated:,}",
            ("", "ms", "of the round"),
            [
                (WAYS[way], f"{1e3 * seconds:.1f}", f"{evaluating.part(way):.1%}")
                for way, seconds in evaluating.seconds.items()
            ],
        ),
        "memory": (
            f"A job of {memory.trials + 10} trials of one round on {memory.workers} workers, {memory.rows:,} rows to "
            "train on",
            ("", "MB"),
            [
                *((f"worker {rank}, in steady state", _mb(own)) for rank, own in enumerate(memory.steady)),
                ("the float32 rows of one worker, for comparison", _mb(memory.shard)),
                ("the driver, after the tenth trial", _mb(memory.driver[0])),
                (f"the driver, {memory.trials} trials later", _mb(memory.driver[1])),
                ("Ray's object store, at most", _mb(memory.store)),
                ("all processes and the object store, at most", _mb(memory.peak)),
            ],
        ),
        "exactness": (
            "What the reported AUC was off scikit-learn's, after 10 rounds",
            ("workers", "difference"),
            [(str(workers), f"{error:.1g}") for workers, error in measured.exactness.items()],
        ),
    }


WAYS = {
    "here": "its share, logloss, here",
    "by hand": "its share, logloss, XGBoost by hand",
    "prediction": "of either: XGBoost's prediction of the new tree",
    "one split": "XGBoost's prediction of a new tree of one split",
    "here, AUC": "its share, AUC, here",
    "whole": "all rows, AUC, XGBoost by hand",
}


def _mb(size: int) -> str:
    return f"{size / 1e6:,.0f}"


def main(
    repeat: Annotated[int, typer.Option(min=1, help="How often each row appears where memory is measured.")] = 100,
    data_dir: Annotated[str | None, typer.Option(help="Folder that holds the bank marketing data.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/xgboost_efficiency"),
    quick: Annotated[bool, typer.Option(help="Few rows, rounds and trials: to see that it works.")] = False,
) -> None:
    """Measure what distributing XGBoost through Warmband costs beside XGBoost itself."""
    console = Console(highlight=False)
    name = marketing(data_dir)
    scale = QUICK if quick else Scale()
    os.environ.pop("RAY_ADDRESS", None)  # Each part measures a Ray of its own.
    os.environ["OMP_NUM_THREADS"] = "1"  # As Ray has it for workers of one CPU.
    with tempfile.TemporaryDirectory(prefix="warmband-efficiency-") as scratch:
        parts = Measured(
            memory=apart(
                partial(memory, trials=scale.memory_trials, workers=3, scratch=f"{scratch}/memory"),
                *(name, data_dir, 1 if quick else repeat),
            ),
            share=apart(
                partial(share, trials=scale.share_trials, rounds=scale.rounds, workers=2, scratch=f"{scratch}/share"),
                *(name, data_dir, scale.share_repeat),
            ),
            turns=turns(
                name, data_dir, scale.pair_repeat, rounds=scale.rounds, pairs=scale.pairs, workers=2, scratch=scratch
            ),
            evaluating=apart(shared_evaluation.measure, name, data_dir, scale.share_repeat, scale.evaluated_rounds),
            exactness=exactness(name, data_dir, f"{scratch}/exactness"),
        )
    console.print(show(parts))
    console.print(f"written to {write(out, result(parts, {'name': name, 'repeat': repeat}))}")


if __name__ == "__main__":
    with errors_in_words():
        typer.run(main)
