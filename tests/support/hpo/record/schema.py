"""Stores of older schema versions."""

from __future__ import annotations

import pytest

from hpo.record.database import open_engine
from hpo.record.schema import upgrade, version_of
from hpo.record.store import Store
from tests.support.schemas import VERSIONS, execute
from trainers.checkpoint import sized


@pytest.fixture(params=VERSIONS, ids=["1", "2", "3", "4", "5", "6", "7", "8"])
def older_version(database, request) -> str:
    """The URL of a store that an older version made."""
    execute(database, *request.param.split(";\n")[:-1])
    return database


def brought_up(url: str) -> int | None:
    """The version that it was."""
    engine = open_engine(url)
    version = upgrade(engine)
    engine.dispose()
    return version


@pytest.fixture
def number(older_version) -> int:
    """Its version."""
    engine = open_engine(older_version)
    found = version_of(engine)
    engine.dispose()
    return found


def check_upgraded(store: Store) -> None:
    (trial,) = store.trials("bank")
    assert (trial.hyperparameters, trial.failure_reason, trial.logs, trial.details) == ({"eta": 0.5}, "boom", "", {})
    assert (trial.checkpoint, trial.files, trial.manifest) == ("file:///c", {}, sized("file:///c", 9))
    assert (trial.turns, trial.given, store.additions("bank")) == ({}, "", [])
    assert (trial.parent, trial.parent_resource, trial.replaces, trial.believed) == ("", 0, "", {})
    assert (trial.stopped, trial.stopped_by, store.acts("bank"), store.stops("bank")) == ({}, "", [], {})
    found = store.job("bank")
    assert (found.spec, found.owner, found.lease, found.driver) == ({"max_jobs": 1}, "", "", {})
    assert [row.metrics for row in store.reports("bank")] == [{"auc": 0.75}]
    assert [(row.worker_seconds, row.workers) for row in store.ledger("bank")] == [(3.0, 0)]
    assert store.lines("bank") == []
