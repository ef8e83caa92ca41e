"""Commands about a single training, from its job file to its deletion."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpo.record.store import Store
from tests.support.command import run
from tests.support.hpo.cli.training_commands import file  # noqa: F401  # A fixture.
from tests.support.refusals import mentions


def test_it_runs_in_the_background(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], store: Store
) -> None:
    from hpo import TrainingJob

    assert run(monkeypatch, "train", str(file), "--no-wait") == 0
    mentions(capsys.readouterr().out, "tiny", "background")
    waiting = TrainingJob.attach("tiny")
    waiting.wait()
    assert store.job("tiny").status == "Completed"
    assert len(waiting.curve()) == 6
