"""What Alembic runs before a step: within the transaction of the caller, who opened the store."""

from alembic import context

from tacit.server.store.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
with context.begin_transaction():
    context.run_migrations()
