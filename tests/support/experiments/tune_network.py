"""A short text for the tuned network."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainers.datasets import Dataset, load


@pytest.fixture(scope="module")
def text() -> Dataset:
    whole = load("python-stdlib")
    train, validation, test = (
        tuple(array[:rows] for array in part)
        for part, rows in ((whole.train, 256), (whole.validation, 32), (whole.test, 32))
    )
    return replace(whole, train=train, validation=validation, test=test)
