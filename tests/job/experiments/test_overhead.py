"""The benchmark of the tuner's own cost, on searches of a few trials."""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path

import optuna
import pytest
import sqlalchemy as sa

from experiments.baselines.optuna_studies import ADJUSTED, DEFAULTS, PRUNERS, STORAGES, blocks
from experiments.workloads.empty_searches import (
    BATCHES,
    PLANS,
    REPORTS,
    NoRecord,
    durable_batches,
    run,
    schedule,
    search,
)
from hpo.record.database import open_engine
from hpo.record.store import Store


@pytest.mark.parametrize("plan", PLANS)
def test_a_search_does_the_same_work_in_the_scheduler_the_loop_and_the_store(plan: str, tmp_path: Path) -> None:
    layout = PLANS[plan](20)
    measured = search(plan, 20, str(tmp_path / "store.db"))
    assert measured.reports == schedule(layout)[1] <= layout.resource
    with Store(f"sqlite:///{tmp_path}/store.db") as store:
        assert len(store.trials("search")) == 20
        assert len(store.reports("search")) == measured.reports
        batches = durable_batches(str(tmp_path / "store.db"))
        assert len(store.reports("search")) == measured.reports + BATCHES * (REPORTS + 1)
    assert len(batches.milliseconds) == BATCHES
    assert min(*batches.milliseconds, batches.alone, batches.alone_wall) > 0


@pytest.mark.parametrize("plan", PLANS)
def test_a_decision_makes_as_many_calls_in_a_search_ten_times_as_large(plan: str) -> None:
    """Calls, not seconds: they are the same on every machine, however busy."""
    calls = []
    for trials in (100, 1000):
        profile = cProfile.Profile()
        controller = profile.runcall(run, PLANS[plan](trials), NoRecord())
        calls.append(pstats.Stats(profile).total_calls / controller.trained)  # type: ignore[attr-defined]
    assert calls[1] == pytest.approx(calls[0], rel=0.1)


@pytest.mark.parametrize("plan", PRUNERS)
def test_optuna_does_the_same_first_trials_wherever_its_study_is(plan: str, tmp_path: Path) -> None:
    """The first block whatever it takes, the next for as long as there is time."""
    found = [
        blocks(plan, storage, str(tmp_path / f"study-{number}"), seconds=0.0, least=3, most=30)
        for number, storage in enumerate(STORAGES)
    ]
    assert [study.storage for study in found] == list(STORAGES)
    assert [len(study.blocks) for study in found] == [1] * len(STORAGES)
    assert {study.blocks[0].trials for study in found} == {3}
    assert len({study.blocks[0].reports for study in found}) == 1
    for study in found:
        assert 0 < study.blocks[0].asking <= study.blocks[0].all
    if plan == "every report":
        assert found[0].blocks[0].reports == 3 * REPORTS


def test_one_of_optunas_studies_has_the_settings_of_sqlite_that_the_store_has(tmp_path: Path) -> None:
    def settings(connected: sa.Engine) -> list[object]:
        with connected.connect() as connection:
            return [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]

    here = settings(open_engine(f"sqlite:///{tmp_path}/store.db"))
    adjusted, usual = STORAGES[ADJUSTED](str(tmp_path / "adjusted")), STORAGES[DEFAULTS](str(tmp_path / "usual"))
    assert isinstance(adjusted, optuna.storages.RDBStorage)
    assert isinstance(usual, optuna.storages.RDBStorage)
    assert settings(adjusted.engine) == here != settings(usual.engine)
