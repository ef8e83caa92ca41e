"""Lines of a job's driver, for readers at other terminals."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Adds the table."""
    op.create_table(
        "lines",
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("id", sa.Text, primary_key=True),
    )
