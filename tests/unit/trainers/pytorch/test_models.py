"""Mixed precision and compilation: for a model and its copies, and for trial after trial."""

from __future__ import annotations

import copy
from collections import namedtuple

import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from tests.support.networks import assignment
from tests.support.trainers.pytorch.models import serve

Pair = namedtuple("Pair", ["first", "second"])


def test_a_copy_of_a_model_in_mixed_precision_is_a_model_of_its_own(tmp_path):
    def function(context) -> None:
        rows = context.shard("train").features
        for _ in context.epochs():
            model = context.prepare_model(nn.Linear(6, 2))
            student, average = copy.deepcopy(model), AveragedModel(model)
            before = model(rows)
            with torch.no_grad():
                model.weight.zero_()
                model.bias.zero_()
            average.update_parameters(model)  # The first one copies.
            with torch.no_grad():
                average.module.bias.fill_(1.0)
            outputs = {"before": before, "model": model(rows), "student": student(rows), "average": average(rows)}
            context.report({}, checkpoint=outputs)

    [found] = serve(assignment(tmp_path, stop=1), function=function, precision="bf16")
    assert {output.dtype for output in found.values()} == {torch.float32}
    assert torch.equal(found["model"], torch.zeros(19, 2))
    assert torch.equal(found["student"], found["before"])
    assert torch.equal(found["average"], torch.ones(19, 2))
    assert found["before"].count_nonzero()


class Several(nn.Linear):
    def forward(self, rows):
        found = super().forward(rows)
        return {"pair": Pair(found, [found]), "rows": len(rows)}


def test_what_a_model_gives_in_mixed_precision_keeps_its_form(tmp_path):
    def function(context) -> None:
        model = context.prepare_model(Several(6, 2))
        for _ in context.epochs():
            found = model(context.shard("train").features)
            assert type(found["pair"]) is Pair
            assert found["pair"].first.dtype == found["pair"].second[0].dtype == torch.float32
            context.report({}, checkpoint={"rows": found["rows"]})

    [found] = serve(assignment(tmp_path, stop=1), function=function, precision="bf16")
    assert found == {"rows": 19}
