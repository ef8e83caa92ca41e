"""Alembic's environment: revisions on the connection and in the transaction of `hpo.record.schema`."""

from alembic import context

from hpo.record.tables import MARK, METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA, version_table=MARK.name)
context.run_migrations()
