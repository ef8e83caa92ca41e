"""Migrations of the record: Alembic's revisions, one for each version of the schema."""
