"""What a search's model expected of a trial when it suggested it."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    """Adds the column."""
    op.add_column("trials", sa.Column("believed", sa.JSON, nullable=False, server_default="{}"))
