"""The tables as they were first."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0001", None


def upgrade() -> None:
    """Make them."""
    op.create_table(
        "runs",
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("population", sa.String(length=128), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("plan_digest", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("paused", sa.Boolean(), nullable=False),
        sa.Column("lease_owner", sa.String(length=32), nullable=True),
        sa.Column("lease_until", sa.Float(), nullable=True),
        sa.Column("term", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_runs")),
        sa.UniqueConstraint("plan_digest", name=op.f("uq_runs_plan_digest")),
    )
    op.create_table(
        "rounds",
        sa.Column("task", sa.String(length=32), nullable=False),
        sa.Column("run", sa.String(length=128), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("signed_task", sa.Text(), nullable=False),
        sa.Column("model_digest", sa.String(length=64), nullable=False),
        sa.Column("goal", sa.Integer(), nullable=False),
        sa.Column("least", sa.Integer(), nullable=False),
        sa.Column("most", sa.Integer(), nullable=False),
        sa.Column("opened", sa.Float(), nullable=False),
        sa.Column("closes_selecting", sa.Float(), nullable=False),
        sa.Column("deadline", sa.Float(), nullable=False),
        sa.Column("assigned", sa.Integer(), nullable=False),
        sa.Column("received", sa.Integer(), nullable=False),
        sa.Column("counted", sa.Integer(), nullable=False),
        sa.Column("lost", sa.Integer(), nullable=False),
        sa.Column("total_digest", sa.String(length=64), nullable=True),
        sa.Column("reports", sa.Integer(), nullable=True),
        sa.Column("short_updates", sa.Integer(), nullable=True),
        sa.Column("losses", sa.Float(), nullable=True),
        sa.Column("ended", sa.Float(), nullable=True),
        sa.Column("why", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(["run"], ["runs.name"], name=op.f("fk_rounds_run")),
        sa.PrimaryKeyConstraint("task", name=op.f("pk_rounds")),
        sa.UniqueConstraint("run", "round", "attempt", name=op.f("uq_rounds_run_round_attempt")),
    )
    op.create_index(op.f("ix_rounds_state"), "rounds", ["state"], unique=False)
    _create_tables_of_devices()


def _create_tables_of_devices() -> None:
    op.create_table(
        "tokens",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_tokens")),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "workers",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("seen", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_workers")),
    )
    op.create_table(
        "assignments",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("task", sa.String(length=32), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("worker", sa.String(length=32), nullable=True),
        sa.Column("body_digest", sa.String(length=64), nullable=True),
        sa.ForeignKeyConstraint(["task"], ["rounds.task"], name=op.f("fk_assignments_task")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_assignments")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("ix_assignments_task"), "assignments", ["task"], unique=False)
    op.create_table(
        "partials",
        sa.Column("task", sa.String(length=32), nullable=False),
        sa.Column("worker", sa.String(length=32), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("blob", sa.Text(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("reports", sa.Integer(), nullable=False),
        sa.Column("short_updates", sa.Integer(), nullable=True),
        sa.Column("losses", sa.Float(), nullable=True),
        sa.ForeignKeyConstraint(["task"], ["rounds.task"], name=op.f("fk_partials_task")),
        sa.PrimaryKeyConstraint("task", "worker", name=op.f("pk_partials")),
    )


def downgrade() -> None:
    """Remove them, with all that is in them."""
    op.drop_table("partials")
    op.drop_index(op.f("ix_assignments_task"), table_name="assignments")
    op.drop_table("assignments")
    op.drop_index(op.f("ix_rounds_state"), table_name="rounds")
    op.drop_table("rounds")
    op.drop_table("workers")
    op.drop_table("tokens")
    op.drop_table("runs")
