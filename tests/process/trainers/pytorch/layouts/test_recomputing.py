"""Blocks of a model: which they are, and their activations computed again with the same bits."""

from __future__ import annotations

import pytest

from tests.support.allreduce import only, program
from tests.support.networks import assignment, close, small_buckets, state
from tests.support.process_gang import ProcessGang
from tests.support.trainers.pytorch.layouts.recomputing import train


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16-master"])
def test_a_gang_trains_the_same_bits_with_it(gang: ProcessGang, tmp_path, precision):
    words = {"per_worker_batch_size": 4, "precision": precision, "gradient_accumulation_steps": 2}
    trials = [assignment(tmp_path, name=str(again), **words, recompute=again) for again in (False, True)]
    [ranks, *_] = gang.run(program(train, 96), *trials, before=small_buckets)
    plain, again = ranks
    close(state(again)["model"], state(plain)["model"], 0.0)
    only([[plain], [again]])
