"""The schema: an empty database gets it, an older store is brought up to it, and another's is left alone."""

from __future__ import annotations

import subprocess
import sys

import pytest

from hpo.record.store import Store
from tests.support.at_once import GATE, LIGHT, ROOT, at_once
from tests.support.hpo.record.schema import (
    check_upgraded,
    older_version,  # noqa: F401  # Fixtures.
)
from tests.support.schemas import VERSIONS

OPEN_IT = f"""{LIGHT}
from hpo.record.database import open_engine
from hpo.record.schema import upgrade
from hpo.record.store import Store
{GATE}
if sys.argv[1].startswith("postgresql"):
    upgrade(open_engine(sys.argv[1]))
with Store(sys.argv[1]) as store:
    print([trial.logs for trial in store.trials("bank")])
"""


@pytest.mark.parametrize("older_version", [VERSIONS[0]], ids=["1"], indirect=True)
def test_processes_that_bring_one_store_up_to_date_at_once_agree(older_version):
    with at_once(OPEN_IT, [[older_version]] * 3) as processes:
        assert [process.communicate(timeout=120)[0] for process in processes] == ["['']\n"] * 3
    with Store(older_version) as store:
        check_upgraded(store)


def test_alembic_is_not_imported_where_nothing_is_to_be_brought_up(tmp_path):
    opened = f"from hpo.record.store import Store; Store('sqlite:///{tmp_path}/new.db').close()"
    used = f"{opened}; print('alembic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", LIGHT + used], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.stdout == "False\n", done.stderr
