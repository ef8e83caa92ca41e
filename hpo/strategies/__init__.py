"""Strategies: which configurations to try, and when to stop one."""
