"""Distributed XGBoost."""
