"""The trial from whose checkpoint a trial began, and the one that ended for it."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    """Adds the columns."""
    op.add_column("trials", sa.Column("parent", sa.Text, nullable=False, server_default=""))
    op.add_column("trials", sa.Column("parent_resource", sa.BigInteger, nullable=False, server_default="0"))
    op.add_column("trials", sa.Column("replaces", sa.Text, nullable=False, server_default=""))
