"""Blocks of a model: which they are, and their activations computed again with the same bits."""

from __future__ import annotations

from tests.support.allreduce import program
from tests.support.networks import assignment, close, state
from tests.support.process_gang import serve_alone
from tests.support.trainers.pytorch.layouts.recomputing import train


def test_compiled_blocks_are_computed_again_as_well(tmp_path):
    words = {"per_worker_batch_size": 32, "precision": "fp32"}
    trials = [assignment(tmp_path, stop=1, name=str(again), **words, recompute=again) for again in (False, True)]
    plain, again = serve_alone(program(train, compile=True)(), *trials)
    close(state(again)["model"], state(plain)["model"], 1e-5)
