"""How many devices come, as each worker sees it."""

import sqlalchemy as sa
from alembic import op

revision, down_revision = "0004", "0003"


def upgrade() -> None:
    """Make its table."""
    op.create_table(
        "paces",
        sa.Column("worker", sa.String(length=32), nullable=False),
        sa.Column("population", sa.String(length=128), nullable=False),
        sa.Column("away", sa.Float(), nullable=False),
        sa.Column("unseen", sa.Float(), nullable=False),
        sa.Column("devices", sa.Float(), nullable=False),
        sa.Column("at", sa.Float(), nullable=False),
        sa.PrimaryKeyConstraint("worker", "population", name=op.f("pk_paces")),
    )
