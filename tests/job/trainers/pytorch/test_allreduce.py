"""What workers compute together, in processes without Ray; the mathematics in float64."""

from __future__ import annotations

import random

import numpy as np
import torch

from tests.support.allreduce import alone, train_with_everything
from tests.support.networks import assignment, close, state


def test_nothing_of_a_trial_is_left_for_the_next(tmp_path):
    words = {"per_worker_batch_size": 8}
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist(), torch.get_num_threads()  # noqa: NPY002
    fresh = alone(train_with_everything, 96, assignment(tmp_path, name="fresh", **words))
    _, later = alone(
        train_with_everything,
        96,
        assignment(tmp_path, name="before", lr=3),
        assignment(tmp_path, name="later", **words),
    )
    close(state(fresh[0])["model"], state(later)["model"], 0.0)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1:] == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_num_threads())  # noqa: NPY002
