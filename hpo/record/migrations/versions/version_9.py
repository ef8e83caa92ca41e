"""Values that persons give for trials of a job that runs, and which trials have given values."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    """Adds the table, and the column."""
    op.create_table(
        "additions",
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("hyperparameters", sa.JSON, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("id", sa.Text, primary_key=True),
    )
    op.add_column("trials", sa.Column("given", sa.Text, nullable=False, server_default=""))
