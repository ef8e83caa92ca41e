"""The schema: an empty database gets it, an older store is brought up to it, and another's is left alone."""

from __future__ import annotations

import sqlalchemy as sa

from hpo.record.schema import SCHEMA_VERSION
from hpo.record.store import Store
from hpo.record.tables import JOBS, LEDGER, TRIALS
from tests.support.hpo.record.schema import brought_up, check_upgraded, number, older_version  # noqa: F401  # Fixtures.
from tests.support.refusals import refuses
from tests.support.rows import bill, trial_with
from trainers.errors import ConfigurationError


def test_a_store_of_an_older_version_is_brought_up_to_date(older_version, number):
    if older_version.startswith("postgresql"):
        with refuses(ConfigurationError, field=("older", str(SCHEMA_VERSION)), value=number, remedy="hpo db upgrade"):
            Store(older_version)
        assert brought_up(older_version) == number
    for _ in range(2):
        with Store(older_version) as store:
            check_upgraded(store)
    assert brought_up(older_version) == SCHEMA_VERSION
    with Store(older_version) as store:
        with store.writer("bank") as writer:
            writer.trial(
                trial_with(trial_id="t1", number=1, logs="10.0.0.1:/tmp/ray/worker.err", details={"x": {"0": 1}})
            )
            writer.ledger(bill(6.0, at=1004.0, workers=3))
        assert [row.workers for row in store.ledger("bank")] == [0, 3]
        assert [trial.logs for trial in store.trials("bank")] == ["", "10.0.0.1:/tmp/ray/worker.err"]
        assert [trial.details for trial in store.trials("bank")] == [{}, {"x": {"0": 1}}]
        for table in (JOBS, TRIALS, LEDGER):
            columns = {column["name"] for column in sa.inspect(store._engine).get_columns(table.name)}
            assert columns == {column.name for column in table.columns}
