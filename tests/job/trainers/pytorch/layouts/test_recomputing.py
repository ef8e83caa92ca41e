"""Blocks of a model: which they are, and their activations computed again with the same bits."""

from __future__ import annotations

from torch import nn

from tests.support.allreduce import program
from tests.support.networks import assignment
from tests.support.process_gang import serve_alone
from tests.support.refusals import mentions
from trainers import ModelPlan


def test_a_model_without_blocks_is_refused(tmp_path):
    def function(context) -> None:
        context.prepare_model(nn.Linear(6, 2), ModelPlan(recompute=True))

    [error] = serve_alone(program(function)(), assignment(tmp_path))
    mentions(str(error), "recompute", "Linear", "ModuleList", "Sequential", "ModelPlan(blocks=...)")
