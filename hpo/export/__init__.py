"""A job's record for other tools: Parquet and CSV files, and studies of Optuna."""

from hpo.export.files import to_csv, to_parquet
from hpo.export.study import to_optuna

__all__ = ["to_csv", "to_optuna", "to_parquet"]
