"""The size of the gang that a row of the ledger bills."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Adds the column."""
    op.add_column("ledger", sa.Column("workers", sa.BigInteger, nullable=False, server_default="0"))
