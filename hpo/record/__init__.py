"""The record of jobs in SQL."""
