"""The transparency log."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0002", "0001"


def upgrade() -> None:
    """Make its table."""
    op.create_table(
        "log",
        sa.Column("position", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("entry", sa.String(length=128), nullable=False),
        sa.Column("leaf", sa.String(length=64), nullable=False),
        sa.Column("head", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("position", name=op.f("pk_log")),
        sa.UniqueConstraint("entry", name=op.f("uq_log_entry")),
        sa.UniqueConstraint("leaf", name=op.f("uq_log_leaf")),
    )
