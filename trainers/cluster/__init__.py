"""The Ray cluster that a job runs on."""
