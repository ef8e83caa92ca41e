"""The first tables: jobs, trials, reports, ledger."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Makes them."""
    op.create_table(
        "jobs",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("created_at", sa.Float, nullable=False),
        sa.Column("ended_at", sa.Float),
        sa.Column("heartbeat", sa.Float, nullable=False),
        sa.Column("spec", sa.JSON, nullable=False),
        sa.Column("plan", sa.JSON, nullable=False),
        sa.Column("summary", sa.JSON, nullable=False),
    )
    op.create_table(
        "trials",
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("trial_id", sa.Text, primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("hyperparameters", sa.JSON, nullable=False),
        sa.Column("bracket", sa.BigInteger),
        sa.Column("resource", sa.BigInteger, nullable=False),
        sa.Column("objective", sa.Float),
        sa.Column("best_objective", sa.Float),
        sa.Column("best_resource", sa.BigInteger),
        sa.Column("checkpoint", sa.Text, nullable=False),
        sa.Column("checkpoint_bytes", sa.BigInteger, nullable=False),
        sa.Column("failure_reason", sa.Text, nullable=False),
        sa.Column("traceback", sa.Text, nullable=False),
        sa.Column("attempts", sa.BigInteger, nullable=False),
        sa.Column("started_at", sa.Float),
        sa.Column("ended_at", sa.Float),
    )
    op.create_table(
        "reports",
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("trial_id", sa.Text, primary_key=True),
        sa.Column("step", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("objective", sa.Float),
        sa.Column("metrics", sa.JSON, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
    )
    op.create_table(
        "ledger",
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("trial_id", sa.Text, nullable=False),
        sa.Column("gang", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("worker_seconds", sa.Float, nullable=False),
        sa.Column("at", sa.Float, nullable=False),
        sa.Column("id", sa.Text, primary_key=True),
    )
    number = op.create_table("schema_version", sa.Column("version", sa.Integer, primary_key=True, autoincrement=False))
    op.bulk_insert(number, [{"version": 1}])
