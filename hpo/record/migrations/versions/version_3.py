"""Details of a trial beside its metrics."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Adds the column."""
    op.add_column("trials", sa.Column("details", sa.JSON, nullable=False, server_default="{}"))
