"""What the files of Weights & Biases hold of a job, read by the package's own messages, and what offline means."""

from __future__ import annotations

from pathlib import Path

from hpo.trackers import WeightsAndBiases
from tests.support.followed import follow
from tests.support.hpo.trackers.wandb import alone  # noqa: F401  # Of every test.
from tests.support.refusals import mentions


def test_online_without_an_account_is_one_warning_and_no_question(tmp_path: Path) -> None:
    _, _, said = follow(WeightsAndBiases("churn", mode="online", folder=tmp_path))
    assert len(said) == 1
    mentions(said[0], "Weights & Biases", "wandb login", "WANDB_API_KEY", "offline")
