"""Recipes on models in shards: precision, activations computed again, and normalisation over all workers' rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.networks import assignment
from tests.support.process_gang import ProcessGang
from tests.support.trainers.pytorch.layouts.shard_recipes import (
    bursts,
    ended,
    gang,  # noqa: F401  # Fixtures.
    program,
)
from trainers.pytorch.state.checkpoint import TorchCheckpoint


@pytest.mark.parametrize("precision", ["bf16", "fp16", "bf16-master", "fp16-master"])
@pytest.mark.parametrize("recompute", [False, True])
def test_shards_train_in_low_precision_and_leave_out_the_same_updates(
    gang: ProcessGang, tmp_path: Path, precision: str, recompute: bool
) -> None:
    losses = {}
    words = {"precision": precision, "recompute": recompute, "burst": 1e9 if "fp16" in precision else 1.0}
    for layout in ("", "replicate=2 shard=2"):
        trial = assignment(tmp_path / layout, stop=1, **words)
        segment = ended(gang.run(program(bursts, layout), trial))
        losses[layout] = segment.reports[-1].metrics["train:loss"]
        kept = TorchCheckpoint.read(segment.checkpoint)
        assert kept.state == {"dtypes": ["torch.float32"], "steps": [7 if "fp16" in precision else 8]}
        assert set(kept.scales) == ({(32768.0, 5)} if "fp16" in precision else set())
    assert losses["replicate=2 shard=2"] == pytest.approx(losses[""], abs=0.03)
