"""The catalogue of named datasets."""

from __future__ import annotations

from trainers.datasets import bank_marketing, images, text
from trainers.datasets.dataset import DatasetInfo
from trainers.errors import ConfigurationError

DATASETS: dict[str, DatasetInfo] = {info.name: info for info in (*bank_marketing.INFOS, *images.INFOS, text.INFO)}


def named(name: str) -> DatasetInfo:
    """One of them.

    Raises:
        ConfigurationError: none is called that.
    """
    if name not in DATASETS:
        raise ConfigurationError(f"there is no dataset {name!r}: give one of {', '.join(map(repr, DATASETS))}")
    return DATASETS[name]
