"""Gangs: warm groups of workers that serve assignments."""
