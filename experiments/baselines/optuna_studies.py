"""Optuna's studies without training, by plan and by storage: the counterpart of `workloads.empty_searches`."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass

import optuna
from optuna.storages.journal import JournalFileBackend

from experiments.workloads.empty_searches import REPORTS, SEED

BUSY_SECONDS = 60.0
IN_MEMORY, DEFAULTS, ADJUSTED, JOURNAL = "in memory", "SQLite", "SQLite, set up as here", "JournalStorage, a file"


def adjusted(path: str) -> sqlite3.Connection:
    """A connection with the settings of SQLite that Warmband's store has, see `hpo.record.database`."""
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, check_same_thread=False)
    for setting in ("journal_mode=WAL", "synchronous=NORMAL"):
        connection.execute(f"PRAGMA {setting}")
    return connection


def journal(path: str) -> optuna.storages.JournalStorage:
    """Optuna's own log of operations, in a file."""
    return optuna.storages.JournalStorage(JournalFileBackend(path))


STORAGES: dict[str, Callable[[str], optuna.storages.BaseStorage]] = {
    IN_MEMORY: lambda path: optuna.storages.InMemoryStorage(),
    DEFAULTS: lambda path: optuna.storages.RDBStorage(f"sqlite:///{path}"),
    ADJUSTED: lambda path: optuna.storages.RDBStorage(
        f"sqlite:///{path}", engine_kwargs={"creator": lambda: adjusted(path)}
    ),
    JOURNAL: journal,
}
"""Where a study is kept, by name."""

PRUNERS: dict[str, Callable[[], optuna.pruners.BasePruner]] = {
    "every report": optuna.pruners.NopPruner,
    "Hyperband": lambda: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=REPORTS, reduction_factor=3),
}
"""By the plan of `experiments.workloads.empty_searches` that each does the work of."""


@dataclass(frozen=True, kw_only=True)
class Block:
    """Some trials of a study, one after another; microseconds are means over its reports.

    Args:
        trials: done when it ended, those before it included.
        reports: in the block.
        asking: of the processor, in `report` and `should_prune`.
        all: of the processor, in every call of Optuna's: `ask`, `suggest` and `tell` beside these.
        wall: of the wall, in every call of Optuna's.
    """

    trials: int
    reports: int
    asking: float
    all: float
    wall: float


@dataclass(frozen=True, kw_only=True)
class Study:
    """What was measured of one study: which of `PRUNERS`, which of `STORAGES`, and its trials in blocks."""

    plan: str
    storage: str
    blocks: list[Block]


def blocks(plan: str, storage: str, path: str, *, seconds: float, least: int, most: int) -> Study:
    """As many trials as the seconds allow, in blocks that grow tenfold.

    Args:
        plan: which of `PRUNERS`.
        storage: which of `STORAGES`.
        path: of a file that is not there yet.
        seconds: of the wall, for all of them.
        least: trials in the first block, which are done whatever they take, so that every study has the same.
        most: trials in all.
    """
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        storage=STORAGES[storage](path),
        direction="maximize",
        sampler=optuna.samplers.RandomSampler(seed=SEED),
        pruner=PRUNERS[plan](),
        study_name="search",  # By which the pruner deals trials to brackets.
    )
    deadline = time.perf_counter() + seconds
    found: list[Block] = []
    done, end = 0, min(least, most)

    def over() -> bool:
        return done >= most or (bool(found) and time.perf_counter() > deadline)

    while not over():
        spent, reports = 0.0, 0
        began, began_wall = time.process_time(), time.perf_counter()
        while not reports or (done < end and not over()):
            seconds_asking, made = one_trial(study)
            spent, reports, done = spent + seconds_asking, reports + made, done + 1
        found.append(
            Block(
                trials=done,
                reports=reports,
                asking=1e6 * spent / reports,
                all=1e6 * (time.process_time() - began) / reports,
                wall=1e6 * (time.perf_counter() - began_wall) / reports,
            )
        )
        end = min(most, end * 10)
    return Study(plan=plan, storage=storage, blocks=found)


def one_trial(study: optuna.Study) -> tuple[float, int]:
    """A trial on a curve of the form of `empty_searches.curve`; processor seconds of its reports, and their number."""
    trial = study.ask()
    height = trial.suggest_float("eta", 0, 1)
    trial.suggest_float("alpha", 0, 2)
    trial.suggest_int("max_depth", 1, 10)
    spent, value = 0.0, 0.0
    for step in range(1, REPORTS + 1):
        value = height * (1 - 0.9**step)
        began = time.process_time()
        trial.report(value, step)
        pruned = trial.should_prune()
        spent += time.process_time() - began
        if pruned:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            return spent, step
    study.tell(trial, value)
    return spent, REPORTS
