"""How far two ways to train are apart, and how much a change gives back: by the laws that shares have to keep."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments.convergence.effects import Gap
from experiments.shared.scores import Scores


def test_the_error_of_a_share_is_its_spread_over_repeats() -> None:
    """Against simulation: the whole experiment done again and again, with three seeds each."""
    random = np.random.default_rng(5)
    shares, errors = [], []
    for _ in range(4000):
        drawn = [Scores(values=tuple(random.normal(mean, 0.02, 3))) for mean in (0.97, 0.4, 0.8)]
        share = Gap(alone=drawn[0], distributed=drawn[1]).share(drawn[2])
        shares.append(share.value)
        errors.append(share.error)
    assert np.mean(shares) == pytest.approx(0.4 / 0.57, abs=0.01)
    assert math.sqrt(np.mean(np.square(errors))) == pytest.approx(np.std(shares), rel=0.1)
