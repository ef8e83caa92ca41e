"""Images of digits: what is loaded of MNIST's files and of scikit-learn's, and where MNIST comes from."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tests.support.trainers.datasets.images import WHOLE, lay_out
from trainers import Channel
from trainers.datasets import check, find, load

real_data = pytest.mark.skipif(
    find("mnist", os.environ.get("WARMBAND_DATA")) is None,
    reason="WARMBAND_DATA does not name a directory with MNIST",
)


@real_data
def test_mnist_is_loaded_as_published() -> None:
    data = load("mnist")
    assert (data.title, data.synthetic) == ("MNIST", False)
    assert [part[0].shape for part in (data.train, data.validation, data.test)] == [
        (50_000, 784),
        (10_000, 784),
        (10_000, 784),
    ]
    for images, labels in (data.train, data.validation, data.test):
        assert {images.dtype, labels.dtype} == {np.dtype(np.float32)}
        assert images.flags.c_contiguous
        assert (images.min(), images.max()) == (0, 1)
        assert set(labels) == set(range(10))
    assert list(data.test[1][:10]) == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert all(ok for _, ok, _ in check("mnist"))
    assert len(check("mnist")) == 4


def test_whole_files_are_read_from_either_layout(nowhere: Path, tmp_path: Path) -> None:
    flat = lay_out(tmp_path / "flat", WHOLE)
    assert find("mnist", flat) == flat
    nested = lay_out(tmp_path / "given" / "mnist", WHOLE)
    assert find("mnist", tmp_path / "given") == nested
    data = load("mnist", data_dir=flat)
    assert [len(part[1]) for part in (data.train, data.validation, data.test)] == [50_000, 10_000, 10_000]
    assert data.test[0].min() == 1.0
    assert data.train[0].max() == 0.0
    given = Channel.of(data.train)
    assert given.read(1, 4).features.shape == (12_500, 784)
    assert np.shares_memory(given.read_whole().features, data.train[0])
