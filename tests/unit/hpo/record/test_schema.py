"""The schema: an empty database gets it, an older store is brought up to it, and another's is left alone."""

from __future__ import annotations

import shutil
import threading

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from hpo.record import schema
from hpo.record.database import open_engine
from hpo.record.schema import SCHEMA_VERSION, upgrade, version_of
from hpo.record.store import Store
from hpo.record.tables import MARK, METADATA
from tests.support.hpo.record.schema import brought_up, check_upgraded, number, older_version  # noqa: F401  # Fixtures.
from tests.support.refusals import mentions, refuses
from tests.support.schemas import VERSIONS, execute
from trainers.errors import ConfigurationError


@pytest.mark.parametrize("way", ["made at once", "through all revisions"])
def test_alembic_finds_no_difference_to_the_tables_of_the_code(database, way):
    engine = open_engine(database)
    if way == "made at once":
        upgrade(engine)
    else:
        with engine.begin() as connection:
            command.upgrade(schema.alembic(connection), "head")
    assert version_of(engine) == SCHEMA_VERSION
    with engine.connect() as connection:
        options = {"version_table": MARK.name, "include_object": lambda _, name, *__: name != MARK.name}
        found = compare_metadata(MigrationContext.configure(connection, opts=options), METADATA)
        keys = {name: sa.inspect(connection).get_pk_constraint(name)["constrained_columns"] for name in METADATA.tables}
    engine.dispose()
    assert found == []
    # Alembic compares neither keys nor, on SQLite, the order in which they are searched.
    assert keys == {name: [column.name for column in table.primary_key] for name, table in METADATA.tables.items()}


def test_each_version_has_its_revision_and_the_last_is_this_one_s():
    from alembic.script import ScriptDirectory

    chain = [revision.revision for revision in ScriptDirectory(str(schema._REVISIONS)).walk_revisions()]
    assert chain == [f"{number:04d}" for number in range(SCHEMA_VERSION, 0, -1)]


def test_a_change_of_the_tables_needs_a_version(tmp_path):
    """That the comparison above can fail."""
    engine = open_engine(f"sqlite:///{tmp_path}/store.db")
    upgrade(engine)
    changed = sa.MetaData()
    for table in METADATA.tables.values():
        table.to_metadata(changed)
    changed.tables["jobs"].append_column(sa.Column("colour", sa.Text))
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": MARK.name})
        assert "add_column" in [change[0] for change in compare_metadata(context, changed)]
    engine.dispose()


def test_an_upgrade_that_breaks_off_changes_nothing(older_version, number, tmp_path, monkeypatch):
    folder = tmp_path / "a %(b)s folder"
    shutil.copytree(schema._REVISIONS, folder)
    (folder / "versions" / "version_12.py").write_text(
        "from alembic import op\nrevision, down_revision = '0012', '0011'\n"
        "def upgrade():\n    op.execute('ALTER TABLE nowhere ADD COLUMN x TEXT')\n"
    )
    monkeypatch.setattr(schema, "_REVISIONS", folder)
    engine = open_engine(older_version)
    with refuses(sa.exc.DBAPIError, field="nowhere"):
        upgrade(engine)
    assert version_of(engine) == number
    monkeypatch.undo()
    assert upgrade(engine) == number
    engine.dispose()
    with Store(older_version) as store:
        check_upgraded(store)


def test_threads_that_bring_up_two_stores_at_once_do_not_mix_them_up(tmp_path):
    urls = [f"sqlite:///{tmp_path}/{number}.db" for number in range(2)]
    for url in urls:
        execute(url, *VERSIONS[0].split(";\n")[:-1])
    found: list[int | None] = []
    gate = threading.Barrier(4)

    def bring_up(url: str) -> None:
        gate.wait()
        found.append(brought_up(url))

    threads = [threading.Thread(target=bring_up, args=[url]) for url in urls * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == [1, 1, SCHEMA_VERSION, SCHEMA_VERSION]
    for url in urls:
        with Store(url) as store:
            check_upgraded(store)


@pytest.mark.parametrize(
    ("statements", "version", "age"),
    [
        (["UPDATE warmband_version SET version_num = '0099'"], 99, "newer"),
        (["DROP TABLE warmband_version", "UPDATE schema_version SET version = 99"], 99, "newer"),
        (["DROP TABLE warmband_version", "UPDATE schema_version SET version = 0"], 0, "older"),
    ],
)
def test_another_version_s_store_is_refused(tmp_path, statements, version, age):
    url = f"sqlite:///{tmp_path}/store.db"
    Store(url).close()
    execute(url, *statements)
    with refuses(ConfigurationError, field=url, remedy="WARMBAND_STORE") as raised:
        Store(url)
    mentions(str(raised.value).replace(url, ""), age, version, SCHEMA_VERSION)


def test_a_warmband_from_before_alembic_refuses_the_store(database):
    """It looks for its number in `schema_version`."""
    Store(database).close()
    engine = open_engine(database)
    with engine.connect() as connection:
        assert connection.scalar(sa.text("SELECT version FROM schema_version")) == 5
    engine.dispose()


def test_a_database_of_another_program_is_left_alone(database):
    execute(database, "CREATE TABLE trials (trial_id INTEGER)")
    with refuses(ConfigurationError, field="table", value="trials", remedy="WARMBAND_STORE"):
        Store(database)
    engine = open_engine(database)
    assert sa.inspect(engine).get_table_names() == ["trials"]
    engine.dispose()
