"""Global random generators of Python and NumPy, seeded for a block and put back after it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Runs a block that draws from the global generators: it draws the same for the same seed, and nobody else notices.

    Args:
        seed: of both generators, from 0 to 2**32 - 1.
    """
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002  # Ray Tune's schedulers draw from it.
    try:
        random.seed(seed)
        np.random.seed(seed)  # noqa: NPY002
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)  # noqa: NPY002
