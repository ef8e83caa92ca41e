"""How the tables became what they are: Alembic's revisions, one for each version of the schema."""
