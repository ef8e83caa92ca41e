"""Forecasts of what a job will take, from earlier jobs or from a measured probe."""
