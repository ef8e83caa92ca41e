"""A tuning job's life: what it is made with, its run, its driver, and its resume."""
