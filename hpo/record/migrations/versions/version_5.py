"""Whose a job is, and which process drives it."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Adds the columns, and tells a Warmband from before Alembic that the store is newer than it."""
    op.add_column("jobs", sa.Column("owner", sa.Text, nullable=False, server_default=""))
    op.add_column("jobs", sa.Column("lease", sa.Text, nullable=False, server_default=""))
    op.add_column("jobs", sa.Column("driver", sa.JSON, nullable=False, server_default="{}"))
    op.execute("UPDATE schema_version SET version = 5")
