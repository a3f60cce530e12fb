"""Versions of the schema, one module each; Alembic runs them in order."""
