"""Alembic's entry: run the plain .sql files on the connection that was handed over, or print them."""

from alembic import context

connection = context.config.attributes.get("connection")
if connection is None:
    context.configure(
        dialect_name="postgresql", version_table_schema="soloist", output_buffer=context.config.output_buffer
    )
    with context.begin_transaction():
        context.run_migrations()
else:
    context.configure(connection=connection, version_table_schema="soloist")
    with context.begin_transaction():
        context.run_migrations()
