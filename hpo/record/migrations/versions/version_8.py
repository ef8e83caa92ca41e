"""The turns of a trial: when it was chosen and told, where decisions follow from the order of results."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    """Adds the column."""
    op.add_column("trials", sa.Column("turns", sa.JSON, nullable=False, server_default="{}"))
