"""Images of handwritten digits: MNIST, and the small ones of scikit-learn."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from trainers.datasets import idx
from trainers.datasets.dataset import Dataset, DatasetInfo, Rows
from trainers.errors import DataError

_TRAIN = ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")
_TEST = ("t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz")
_TRAIN_ROWS, _TEST_ROWS, _SIDE = 60_000, 10_000, 28
_VALIDATION_ROWS = {"mnist": 10_000, "digits": 297}
_DIGITS_TEST_ROWS = 300
_WHITE = {"mnist": 255, "digits": 16}
"""The brightest pixel, which becomes 1."""

INFOS = (
    DatasetInfo(
        name="mnist",
        title="MNIST",
        description="28x28 images of handwritten digits, 60,000 to train on and 10,000 to test.",
        source="LeCun, Cortes and Burges, The MNIST database of handwritten digits",
        licence="CC BY-SA 3.0",
        rows=_TRAIN_ROWS + _TEST_ROWS,
        url="https://ossci-datasets.s3.amazonaws.com/mnist/",
        mirrors=("https://storage.googleapis.com/cvdf-datasets/mnist/",),
        files={
            _TRAIN[0]: "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            _TRAIN[1]: "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            _TEST[0]: "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            _TEST[1]: "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        },
        instead="digits",
    ),
    DatasetInfo(
        name="digits",
        title="8x8 digits of scikit-learn",
        description="8x8 images of handwritten digits of scikit-learn, for where nothing can be downloaded.",
        source="Alpaydin and Kaynak (1998), Optical Recognition of Handwritten Digits, UCI Machine Learning Repository",
        licence="CC BY 4.0",
        rows=1_797,
    ),
)


def load(info: DatasetInfo, folder: Path | None, seed: int, repeat: int) -> Dataset:
    """Loads either: float32 features from 0 to 1, a column a pixel, and float32 labels from 0 to 9.

    Args:
        info: which.
        folder: where MNIST's files are; its published test images are the test part. The digits have no such part,
            and 300 of them become it.
        seed: of the draw of validation rows (MNIST's 10,000, the digits' 297) out of what is left to train on; the
            other rows keep their order.
        repeat: how often each train and validation row appears.

    Raises:
        DataError: a file cannot be read or does not hold what it should.
    """
    white, held_out = _WHITE[info.name], _VALIDATION_ROWS[info.name]
    if folder is None:
        images, labels = _bundled()
        (images, labels), test = _split(images, labels, _DIGITS_TEST_ROWS, seed + 1)
    else:
        remedy = f"delete it and fetch {info.name} again"
        images, labels = _read(folder, _TRAIN, _TRAIN_ROWS, remedy)
        test = _read(folder, _TEST, _TEST_ROWS, remedy)
    train, validation = _split(images, labels, held_out, seed)
    return Dataset(
        name=info.name,
        title=info.title,
        synthetic=info.synthetic,
        train=_scaled(train, white, repeat),
        validation=_scaled(validation, white, repeat),
        test=_scaled(test, white, 1),
    )


def _read(folder: Path, files: tuple[str, str], rows: int, remedy: str) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Images, a row each, and their labels."""
    images, labels = idx.read_images(folder / files[0], remedy), idx.read_labels(folder / files[1], remedy)
    if len(images) != len(labels):
        raise DataError(
            f"{folder / files[0]} holds {len(images):,} images and {files[1]} {len(labels):,} labels: {remedy}"
        )
    if images.shape != (rows, _SIDE, _SIDE):
        shape = f"{len(images):,} images of {images.shape[1]}x{images.shape[2]}"
        raise DataError(f"{folder / files[0]} holds {shape}, not {rows:,} of {_SIDE}x{_SIDE}: {remedy}")
    return images.reshape(rows, -1), labels


def _bundled() -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    from sklearn.datasets import load_digits

    digits = load_digits()
    return digits.data.astype(np.uint8), digits.target.astype(np.uint8)


_Bytes = tuple[NDArray[np.uint8], NDArray[np.uint8]]


def _split(images: NDArray[np.uint8], labels: NDArray[np.uint8], rows: int, seed: int) -> tuple[_Bytes, _Bytes]:
    """The rest, and so many rows drawn out of all. While they are bytes, which are a quarter of float32."""
    drawn = np.zeros(len(images), bool)
    drawn[np.random.default_rng(seed).choice(len(images), rows, replace=False)] = True
    return (images[~drawn], labels[~drawn]), (images[drawn], labels[drawn])


def _scaled(part: _Bytes, white: int, repeat: int) -> Rows:
    """As float32, without an array of float64 on the way."""
    images, labels = (np.concatenate([array] * repeat) if repeat > 1 else array for array in part)
    return np.divide(images, np.float32(white), dtype=np.float32), labels.astype(np.float32)
