"""What the files of Weights & Biases hold of a job, read by the package's own messages, and what offline means."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpo.trackers import WeightsAndBiases
from tests.support.followed import follow
from tests.support.refusals import mentions


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No account, no settings of this machine's user."""
    for name in ("WANDB_API_KEY", "WANDB_MODE", "WANDB_PROJECT", "WANDB_ENTITY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setenv("WANDB_DISABLE_GIT", "true")
    monkeypatch.setenv("WANDB_ERROR_REPORTING", "false")


def test_online_without_an_account_is_one_warning_and_no_question(tmp_path: Path) -> None:
    _, _, said = follow(WeightsAndBiases("churn", mode="online", folder=tmp_path))
    assert len(said) == 1
    mentions(said[0], "Weights & Biases", "wandb login", "WANDB_API_KEY", "offline")
