"""What persons did to jobs, and which trials they stopped."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    """Adds the table, and the column."""
    op.create_table(
        "acts",
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("by", sa.Text, nullable=False),
        sa.Column("door", sa.Text, nullable=False),
        sa.Column("arguments", sa.JSON, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("gone_at", sa.Float, nullable=True),
    )
    op.add_column("trials", sa.Column("stopped", sa.JSON, nullable=False, server_default="{}"))
