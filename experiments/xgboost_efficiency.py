"""What distributing XGBoost through Warmband costs beside XGBoost itself: time, exactness, memory.

    python -m experiments.xgboost_efficiency [--repeat 100] [--data-dir DIR] [--out DIR] [--quick]

On the bank marketing data, its train and validation rows repeated. Every worker has one thread.

*Share*: a tuning job (Hyperband, 30 trials of at most 30 rounds, two workers, rows 100 times) whose workers note the
seconds that they spend within XGBoost's functions that train, predict, evaluate and add up over workers
(`experiments/noting.py`), waiting for each other in them included, and nothing else. Their sum over all workers is
divided by the worker-seconds that the ledger billed: by all of them, the start of the gang's processes and the loading
of rows included, which is the promise; and by those billed since the gang was up, beside it.

*By hand*: one trial of 30 rounds on a gang that is up, from handing out the assignment until its result is there, its
model written; against `xgb.train` on as many plain processes, which XGBoost's `RabitTracker` and `CommunicatorContext`
connect, from telling them to train until all have answered, the model written. Rows are read and matrices built before,
in both; parameters, the evaluation of a worker's share of the validation rows by logloss after each round, threads,
seed and the processes' niceness are the same (Ray's workers are nice to others), and so have to be the curves. The two
take turns, and the promise is on the median of the ratios within a turn. The same trial runs through the backend
"xgboost_ray" as often, its own start of actors included, which it repeats for each trial.

*Evaluation*: one of 16 workers, simulated in this process (`experiments/shared_evaluation.py`): the seconds of a round
on its share of the rows, and of evaluating its share of a fifth as many, here and by hand.

*Exactness*: the AUC that 1, 2 and 3 workers report after 10 rounds, against scikit-learn's on the whole validation set
with the model that they wrote.

*Memory*: a job of 30 trials of one round on three workers with `--repeat` rows, in a process of its own that is looked
at twice a second. "Own" memory is what /proc/PID/smaps_rollup calls Pss_Anon and Pss_File: private pages and a share of
libraries, without the pages of Ray's object store, which are counted once, on their own. A worker's is the median of
the looks while the last twenty trials trained. The machine's peak sums the driver, all that it started, Ray's processes
among them, and the object store. The driver's growth is between the end of the tenth trial and that of the last.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from ray.train import ScalingConfig
from rich.console import Console, Group

from experiments import shared_evaluation
from experiments.benchmark import Target, apart, promises, table, targets_to_json, write
from experiments.by_hand import ByHand
from experiments.looking import Looking
from experiments.noting import FOLDER, NotingTrainer
from experiments.on_gang import OnGang
from experiments.shared_evaluation import Evaluating
from hpo import ContinuousParameter, HyperbandStrategyConfig, HyperparameterTuner, IntegerParameter, StrategyConfig
from hpo.analytics import tuned_trials
from hpo.ranges import ParameterRange
from hpo.store import Store
from trainers import Channel, XGBoostTrainer
from trainers.datasets import Dataset, find, load
from trainers.trainer import open_channels
from trainers.xgboost_booster import booster_parameters

SEED, AT_ONCE = 1729, 1
PAIR = {"objective": "binary:logistic", "eval_metric": "logloss", "tree_method": "hist"}
STATIC = {"objective": "binary:logistic", "eval_metric": "auc", "tree_method": "hist"}
RANGES: dict[str, ParameterRange] = {
    "eta": ContinuousParameter(0.01, 1),
    "min_child_weight": ContinuousParameter(1, 10),
    "alpha": ContinuousParameter(0, 2),
    "max_depth": IntegerParameter(3, 10),
}


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
    evaluated_rounds: int = 10


QUICK = Scale(share_repeat=1, share_trials=3, rounds=3, pair_repeat=1, pairs=3, memory_trials=12, evaluated_rounds=3)


@dataclass(frozen=True, kw_only=True)
class Share:
    """Where a job's billed worker-seconds went.

    Args:
        rows: of the train channel.
        workers: of its gang.
        rounds: in all trials and the un-tuned run.
        inside: worker-seconds within XGBoost's update and evaluation.
        billed: worker-seconds by kind.
    """

    rows: int
    workers: int
    rounds: int
    inside: float
    billed: dict[str, float]

    @property
    def whole(self) -> float:
        """The share of all billed worker-seconds."""
        return self.inside / sum(self.billed.values())

    @property
    def since_up(self) -> float:
        """The share of those billed since the gang was up."""
        return self.inside / (sum(self.billed.values()) - self.billed.get("starting", 0.0))

    @property
    def round_seconds(self) -> float:
        """Of one round, in XGBoost."""
        return self.inside / self.workers / self.rounds


@dataclass(frozen=True, kw_only=True)
class Turns:
    """The same trial, trained in turns: wall seconds of each turn.

    Args:
        workers: that train it.
        rows: of the train channel.
        rounds: of the trial.
        seconds: by who trained it: "here", "by hand", and "xgboost_ray" where there is that backend.
        difference: the largest between the losses of "here" and "by hand" after any round.
    """

    workers: int
    rows: int
    rounds: int
    seconds: dict[str, list[float]]
    difference: float

    def ratio(self, over: str) -> float:
        """How many times as long "here" takes; the median over turns."""
        pairs = zip(self.seconds["here"], self.seconds[over], strict=True)
        return statistics.median(here / other for here, other in pairs)


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What a job held, in bytes.

    Args:
        rows: of the train channel.
        workers: of its gang.
        shard: float32 features and labels of one worker's rows.
        steady: own memory of each worker while the last trials trained.
        peak: of all its processes and the object store at most.
        store: of the object store at most.
        driver: own memory of the driver after the tenth and after the last trial.
        trials: between these two.
    """

    rows: int
    workers: int
    shard: int
    steady: list[int]
    peak: int
    store: int
    driver: tuple[int, int]
    trials: int


# ---- a job whose workers note what they do


def tune(dataset: Dataset, scratch: str, *, workers: int, trials: int, rounds: int, strategy: str) -> str:
    """Runs a job whose workers note what they do; returns the URL of its store."""
    url = f"sqlite:///{scratch}/store.db"
    notes = Path(scratch, "notes")
    notes.mkdir(parents=True)
    os.environ[FOLDER] = str(notes)
    hyperband = StrategyConfig(HyperbandStrategyConfig(max_resource=rounds, min_resource=1))
    tuner = HyperparameterTuner(
        NotingTrainer(scaling=ScalingConfig(num_workers=workers), hyperparameters={**STATIC, "num_round": rounds}),
        "validation:auc",
        RANGES,
        strategy=strategy,
        strategy_config=hyperband if strategy == "Hyperband" else None,
        max_jobs=trials,
        max_parallel_jobs=AT_ONCE,
        random_seed=SEED,
        storage_path=f"{scratch}/jobs",
        store=url,
        console=Console(quiet=True),
    )
    tuner.fit({"train": dataset.train, "validation": dataset.validation}, job_name="efficiency")
    return url


# ---- the share of billed seconds


def share(name: str, data_dir: str | None, scale: Scale, workers: int, scratch: str) -> Share:
    """Where the worker-seconds of a job go."""
    dataset = load(name, data_dir=data_dir, repeat=scale.share_repeat)
    url = tune(dataset, scratch, workers=workers, trials=scale.share_trials, rounds=scale.rounds, strategy="Hyperband")
    notes = [json.loads(line) for file in Path(scratch, "notes").iterdir() for line in file.open()]
    billed: dict[str, float] = {}
    with Store(url) as store:
        for entry in store.ledger("efficiency"):
            billed[entry.kind] = billed.get(entry.kind, 0.0) + entry.worker_seconds
    return Share(
        rows=len(dataset.train),
        workers=workers,
        rounds=sum(note["rounds"] for note in notes) // workers,
        inside=sum(note["inside"] for note in notes),
        billed=billed,
    )


# ---- one trial, by turns


def turns(name: str, data_dir: str | None, scale: Scale, workers: int, scratch: str) -> Turns:
    """One trial here, by hand, and through xgboost_ray where that is a backend, in turns."""
    dataset = load(name, data_dir=data_dir, repeat=scale.pair_repeat)
    channels = open_channels({"train": dataset.train, "validation": dataset.validation})
    scaling = ScalingConfig(num_workers=workers)
    seconds: dict[str, list[float]] = {"here": [], "by hand": []}
    with XGBoostTrainer(scaling=scaling, hyperparameters=PAIR).gangs("efficiency", channels) as gangs:
        here = OnGang(gangs, PAIR, scale.rounds, f"{scratch}/here")
        here.start(workers)
        parameters = booster_parameters(here.assignment(), cpus=1)
        hand = ByHand(channels, workers, parameters, scale.rounds, niceness=here.niceness)
        try:
            hand.start()
            curve = [report.metrics["validation:logloss"] for report in here.train().segment.reports]
            _, by_hand = hand.train(f"{scratch}/by-hand")
            for turn in range(scale.pairs):
                for who in ("here", "by hand") if turn % 2 else ("by hand", "here"):
                    took = here.train().seconds if who == "here" else hand.train(f"{scratch}/by-hand")[0]
                    seconds[who].append(took)
        finally:
            hand.close()
    seconds["xgboost_ray"] = through_xgboost_ray(channels, scaling, scale, scratch)
    return Turns(
        workers=workers,
        rows=len(dataset.train),
        rounds=scale.rounds,
        seconds=seconds,
        difference=max(abs(a - b) for a, b in zip(curve, by_hand, strict=True)),
    )


def through_xgboost_ray(
    channels: Mapping[str, Channel], scaling: ScalingConfig, scale: Scale, scratch: str
) -> list[float]:
    """Wall seconds of the same trial through the other backend, as often; behind the others, on a Ray of its own."""
    trainer = XGBoostTrainer(scaling=scaling, hyperparameters=PAIR, backend="xgboost_ray")
    with trainer.gangs("other", channels) as gangs:
        other = OnGang(gangs, PAIR, scale.rounds, f"{scratch}/xgboost-ray")
        other.start(trainer.workers)
        return [other.train().seconds for _ in range(scale.pairs)]


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


# ---- memory


def memory(name: str, data_dir: str | None, repeat: int, scale: Scale, workers: int, scratch: str) -> Memory:
    """What a job of short trials holds; in a process that has done nothing else."""
    dataset = load(name, data_dir=data_dir, repeat=repeat)
    with Looking(Path(scratch, "notes")) as looking:
        url = tune(dataset, scratch, workers=workers, trials=scale.memory_trials, rounds=1, strategy="Random")
    with Store(url) as store:
        ended = sorted(trial.ended_at or math.inf for trial in tuned_trials(store, "efficiency"))
    tenth, last = ended[9], ended[-1]
    up = [look for look in looking.looks if len(look.workers) == workers]
    late = [look for look in up if tenth <= look.at <= last] or up[-1:]  # A quick run is over before the next look.
    rows, columns = dataset.train.shape
    return Memory(
        rows=rows,
        workers=workers,
        shard=4 * rows * columns // workers,
        steady=[int(statistics.median(look.workers[pid] for look in late)) for pid in late[0].workers],
        peak=max(look.together for look in looking.looks),
        store=max(look.store for look in looking.looks),
        driver=(late[0].driver, late[-1].driver),
        trials=scale.memory_trials - 10,
    )


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
    spread = ", ".join(f"{ratio:.3f}" for ratio in statistics.quantiles(_ratios(turns), n=4))
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
            measured=turns.ratio("by hand"),
            unit="times",
            note=f"quartiles of {len(_ratios(turns))} turns: {spread}",
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


def _ratios(turns: Turns) -> list[float]:
    return [here / hand for here, hand in zip(turns.seconds["here"], turns.seconds["by hand"], strict=True)]


def result(measured: Measured, dataset: Mapping[str, Any]) -> dict[str, Any]:
    """Everything measured, for result.json."""
    return {
        "dataset": dict(dataset),
        "setting": {"static": STATIC, "seed": SEED, "gangs": AT_ONCE},
        **asdict(measured),
        "targets": targets_to_json(targets(measured)),
    }


def show(measured: Measured) -> Group:
    """The tables that people look at."""
    share, turns, memory, evaluating = measured.share, measured.turns, measured.memory, measured.evaluating
    evaluated = [
        (way, f"{1e3 * seconds:.1f}", f"{100 * evaluating.part(way):.1f}%")
        for way, seconds in evaluating.seconds.items()
    ]
    billed = [(kind, f"{seconds:.1f}") for kind, seconds in share.billed.items()]
    took = [
        (who, f"{statistics.median(seconds):.3f}", f"{min(seconds):.3f}", f"{max(seconds):.3f}")
        for who, seconds in turns.seconds.items()
    ]
    if "xgboost_ray" not in turns.seconds:
        took.append(("xgboost_ray", "not there", "", ""))
    held_by = [
        *((f"worker {rank}", f"{own / 1e6:.0f}") for rank, own in enumerate(memory.steady)),
        ("driver, after the tenth trial", f"{memory.driver[0] / 1e6:.0f}"),
        (f"driver, {memory.trials} trials later", f"{memory.driver[1] / 1e6:.0f}"),
        ("object store, at most", f"{memory.store / 1e6:.0f}"),
        ("all together, at most", f"{memory.peak / 1e6:.0f}"),
    ]
    return Group(
        table(
            f"A job of {share.rounds} rounds on {share.workers} workers, {share.rows:,} rows: worker-seconds",
            ("", ""),
            [("inside XGBoost", f"{share.inside:.1f}"), *((f"billed: {kind}", seconds) for kind, seconds in billed)],
        ),
        f"Inside XGBoost: {share.whole:.3f} of all billed, {share.since_up:.3f} since the gang was up\n",
        table(
            f"A trial of {turns.rounds} rounds on {turns.workers} workers, {turns.rows:,} rows: seconds",
            ("", "median", "least", "most"),
            took,
        ),
        f"Largest difference of logloss between here and by hand: {turns.difference:.1e}\n",
        table(
            f"A round on one of {evaluating.shares} workers: training on {evaluating.rows:,} rows takes "
            f"{1e3 * evaluating.update:.1f} ms, evaluating {evaluating.evaluated:,}",
            ("", "ms", "of the round"),
            evaluated,
        ),
        "",
        table(f"{memory.rows:,} rows on {memory.workers} workers: MB held", ("", ""), held_by),
        "",
        promises(targets(measured)),
    )


def main(
    repeat: Annotated[int, typer.Option(min=1, help="How often each row appears where memory is measured.")] = 100,
    data_dir: Annotated[str | None, typer.Option(help="Folder that holds the bank marketing data.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for result.json.")] = Path("results/xgboost_efficiency"),
    quick: Annotated[bool, typer.Option(help="Few rows, rounds and trials: to see that it works.")] = False,
) -> None:
    """Measure what distributing XGBoost through Warmband costs beside XGBoost itself."""
    console = Console(highlight=False)
    name = "bank-marketing" if find("bank-marketing", data_dir) else "bank-marketing-synthetic"
    scale = QUICK if quick else Scale()
    os.environ.pop("RAY_ADDRESS", None)  # Each part measures a Ray of its own.
    os.environ["OMP_NUM_THREADS"] = "1"  # As Ray has it for workers of one CPU.
    with tempfile.TemporaryDirectory(prefix="warmband-efficiency-") as scratch:
        parts = Measured(
            memory=apart(memory, name, data_dir, 1 if quick else repeat, scale, 3, f"{scratch}/memory"),
            share=apart(share, name, data_dir, scale, 2, f"{scratch}/share"),
            turns=turns(name, data_dir, scale, 2, f"{scratch}"),
            evaluating=apart(shared_evaluation.measure, name, data_dir, scale.share_repeat, scale.evaluated_rounds),
            exactness=exactness(name, data_dir, f"{scratch}/exactness"),
        )
    console.print(show(parts))
    console.print(f"written to {write(out, result(parts, {'name': name, 'repeat': repeat}))}")


if __name__ == "__main__":
    typer.run(main)
