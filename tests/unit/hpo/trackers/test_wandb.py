"""What the files of Weights & Biases hold of a job, read by the package's own messages, and what offline means."""

from __future__ import annotations

from pathlib import Path

from hpo.trackers import WeightsAndBiases
from tests.support.hpo.trackers.wandb import alone  # noqa: F401  # Of every test.
from tests.support.refusals import refuses
from trainers.errors import ConfigurationError


def test_another_mode_is_refused() -> None:
    with refuses(ConfigurationError, field="mode", value="onlin", remedy=("online", "offline")):
        WeightsAndBiases("churn", mode="onlin")  # type: ignore[arg-type]


def test_files_go_to_warmbands_home_where_nothing_else_is_said(home: Path) -> None:
    assert WeightsAndBiases("churn").folder == str(home)
