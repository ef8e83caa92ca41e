"""One module for each version of the schema, which makes it of the one before."""
