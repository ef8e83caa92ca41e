"""Where the output of the worker is that failed a trial."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Adds the column."""
    op.add_column("trials", sa.Column("logs", sa.Text, nullable=False, server_default=""))
