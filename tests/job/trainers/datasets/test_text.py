"""The text of Python's standard library as rows: whole files in each part, the same rows each time."""

from __future__ import annotations

import numpy as np

from trainers.datasets import load, text


def test_this_machine_s_library_has_enough_of_it_to_train_validate_and_test() -> None:
    data = load("python-stdlib")
    rows = [len(part[1]) for part in (data.train, data.validation, data.test)]
    assert rows[0] > 50_000
    assert min(rows) > 1000
    features, _ = data.train
    assert features.shape[1] == text.CONTEXT
    assert features[:1000].max() < 256
    assert b"def " in features[:1000].astype(np.uint8).tobytes()
