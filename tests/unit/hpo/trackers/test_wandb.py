"""What the files of Weights & Biases hold of a job, read by the package's own messages, and what offline means."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpo.trackers import WeightsAndBiases
from tests.support.refusals import refuses
from trainers.errors import ConfigurationError


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No account, no settings of this machine's user."""
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_PROJECT", "WANDB_ENTITY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("WANDB_DISABLE_GIT", "true")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")


def test_another_mode_is_refused() -> None:
    with refuses(ConfigurationError, field="mode", value="onlin", remedy=("online", "offline")):
        WeightsAndBiases("churn", mode="onlin")  # type: ignore[arg-type]


def test_files_go_to_warmbands_home_where_nothing_else_is_said(home: Path) -> None:
    assert WeightsAndBiases("churn").folder == str(home)
