"""A tuning job as a YAML file."""
