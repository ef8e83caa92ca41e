"""What a trial sets for the whole process holds for that trial."""

from __future__ import annotations

import pytest
import torch
from ray.train import ScalingConfig

from tests.support.networks import assignment, data, state
from tests.support.process_gang import serve_alone
from trainers import TorchTrainer
from trainers.channels import Channel

HERE = ScalingConfig(num_workers=0)


@pytest.mark.parametrize(
    "turn",
    [
        lambda: setattr(torch.backends, "fp32_precision", "tf32"),
        lambda: setattr(torch.backends.mkldnn.matmul, "fp32_precision", "bf16"),
        lambda: setattr(torch.backends.cuda.matmul, "fp32_precision", "tf32"),
        lambda: setattr(torch.backends.cudnn.conv, "fp32_precision", "ieee"),
        lambda: setattr(torch.backends.cuda.matmul, "allow_tf32", True),
        lambda: setattr(torch.backends.cudnn, "allow_tf32", False),
        lambda: torch.set_float32_matmul_precision("high"),
    ],
)
def test_precisions_are_turned_back_whichever_way_they_were_set(tmp_path, turn):
    def precise() -> dict:
        parts = torch.backends, torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.mkldnn.matmul
        return {"all": torch.get_float32_matmul_precision(), "parts": [part.fp32_precision for part in parts]}

    def function(context) -> None:
        turn()
        for _ in context.epochs():
            context.report({}, checkpoint={})

    before = precise()
    program = TorchTrainer(function, scaling=HERE).program({"train": Channel.of(data(), name="train").place(0)})
    state(serve_alone(program, assignment(tmp_path))[0])
    assert precise() == before
