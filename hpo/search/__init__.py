"""The search of one job: its loop, its trials, and their gangs."""
