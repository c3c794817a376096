"""Which devices may request tokens, and which did."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0003", "0002"


def upgrade() -> None:
    """Make their tables."""
    op.create_table(
        "enrolments",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("hash", name=op.f("pk_enrolments")),
    )
    op.create_table(
        "batches",
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("hash", "epoch", name=op.f("pk_batches")),
    )
