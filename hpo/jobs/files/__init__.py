"""A job's files: its folder, copies of its inputs, the models that it keeps, and their deletion."""
