"""Commands about a single training, from its job file to its deletion."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpo.record.store import Store
from tests.support import yaml_text
from tests.support.command import run
from tests.support.refusals import mentions


@pytest.fixture
def file(job: Path) -> Path:
    """The job file, of a single training in this process."""
    state = yaml_text.load(job.read_text())
    del state["tuning"]
    state["trainer"] |= {"num_workers": 0}
    state["trainer"]["hyperparameters"] |= {"num_round": 6}
    state["training"] = {"checkpoint_every": 2, "random_seed": 1}
    job.write_text(yaml_text.dump(state))
    return job


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
