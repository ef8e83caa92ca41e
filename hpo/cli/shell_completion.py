"""Shell completion: names of jobs and of datasets."""

from __future__ import annotations

from trainers.errors import WarmbandError


def job_names(incomplete: str) -> list[str]:
    """Jobs of the default store."""
    from hpo.record import Store

    try:
        with Store() as store:
            return [job.name for job in store.jobs() if job.name.startswith(incomplete)]
    except WarmbandError:
        return []


def dataset_names(incomplete: str) -> list[str]:
    """Datasets that have a name."""
    from trainers.datasets import DATASETS

    return [name for name in DATASETS if name.startswith(incomplete)]
