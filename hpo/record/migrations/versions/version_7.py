"""The files of a trial's checkpoint, with their sizes and digests."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Adds the column."""
    op.add_column("trials", sa.Column("files", sa.JSON, nullable=False, server_default="{}"))
