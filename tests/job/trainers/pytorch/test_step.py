"""`context.step`: one model on all workers, whatever is stepped with, and the same answer in every mode."""

from __future__ import annotations

import pytest

from tests.support.networks import assignment
from tests.support.refusals import refuses
from tests.support.trainers.pytorch.step import alone, clips
from trainers.errors import TrialError


@pytest.mark.parametrize("max_norm", [0, -1.0, float("nan"), True, "1"])
def test_a_norm_that_is_none_is_refused(tmp_path, max_norm):
    with refuses(TrialError, field=("context.step", "max_norm"), value=max_norm, remedy=("0", "None")):
        alone(clips, assignment(tmp_path, per_worker_batch_size=8, max_norm=max_norm))
