"""Named datasets: verified download, the published preparation, and generated stand-ins."""

from __future__ import annotations

from pathlib import Path

from trainers.datasets import bank_marketing, images, text
from trainers.datasets.catalogue import DATASETS, named
from trainers.datasets.dataset import Dataset, DatasetInfo, Rows
from trainers.datasets.files import check, fetch, find
from trainers.errors import ConfigurationError

__all__ = ["DATASETS", "Dataset", "DatasetInfo", "Rows", "check", "fetch", "find", "load"]

_SEED = 1729
_PREPARED = {
    **{info.name: bank_marketing.load for info in bank_marketing.INFOS},
    **{info.name: images.load for info in images.INFOS},
    text.INFO.name: text.load,
}


def load(name: str, *, data_dir: str | Path | None = None, seed: int = _SEED, repeat: int = 1) -> Dataset:
    """Prepares a dataset, in parts to train on, to validate and to test.

    Bank marketing as published: 85% train, 5% validation, 10% test of its shuffled rows. MNIST: its 10,000 test images,
    10,000 of the others drawn for validation, 50,000 to train on. Python's standard library: whole files, nine tenths
    to train on.

    Args:
        name: one of `DATASETS`.
        data_dir: where its files lie; see `find`. What is not found is fetched.
        seed: of the shuffle or draw, and of what a synthetic dataset holds.
        repeat: how often each train and validation row appears; test rows appear once.

    Raises:
        DataError: a file cannot be had, is cut short, or does not hold what it should.
    """
    info = named(name)
    if repeat < 1:
        raise ConfigurationError(f"repeat={repeat}: give at least 1")
    path = None if info.url is None else find(name, data_dir) or fetch(name, data_dir)
    return _PREPARED[name](info, path, seed, repeat)
