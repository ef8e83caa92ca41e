"""Observers of a running job: users' callbacks, terminal, Prometheus, logs, and the summary at its end."""
