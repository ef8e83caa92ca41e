"""Archives: each trial that has ended leaves its model, before its checkpoint goes and whatever comes between."""

from __future__ import annotations

import logging
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xgboost
from ray.train import ScalingConfig
from ray.tune.experiment import Trial

from hpo.jobs.files import ARCHIVES, Archives, archive_of, checkpoints as module
from hpo.jobs.files.checkpoints import Checkpoints
from hpo.search.trial import TrialRun
from hpo.strategies.hyperband import lay_out
from tests.support.refusals import mentions
from tests.support.rows import until
from tests.support.simulated import search_of
from trainers import XGBoostTrainer, checkpoint, storage

ROWS = np.arange(40.0).reshape(20, 2)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH_SECONDS", 0.01)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of the job's checkpoints."""
    (tmp_path / "job").mkdir()
    return tmp_path / "job"


@pytest.fixture
def keeper(folder: Path) -> Callable[..., Checkpoints]:
    def made(**spec: str) -> Checkpoints:
        estimator = XGBoostTrainer(scaling=ScalingConfig(num_workers=1))
        archives = Archives({ARCHIVES: str(folder.parent / "models"), **spec}, estimator, str(folder), name="bank")
        search = replace(search_of(lay_out(30, 1, 27), parallel=4), storage_path=str(folder))
        return Checkpoints(search, lambda: None, num_to_keep=1, archives=archives)

    return made


def booster(rounds: int) -> xgboost.Booster:
    return xgboost.train({"max_depth": 2}, xgboost.DMatrix(ROWS, label=ROWS[:, 0]), rounds)


def ended(folder: Path, number: int, value: float, rounds: int = 3) -> TrialRun:
    """A trial that has ended with a model."""
    trial = Trial("warmband", trial_id=f"job-{number:03d}", stub=True)
    trial.set_status(Trial.TERMINATED)
    uri = str(folder / trial.trial_id / f"{rounds:06d}.ubj")
    manifest = checkpoint.save(uri, bytes(booster(rounds).save_raw("ubj")))
    standing = {"value": value, "best_value": value, "resource": rounds, "checkpoint": uri, "manifest": manifest}
    return TrialRun(trial=trial, number=number, hyperparameters={}, seed=0, limit=27, **standing)


def tell(keeper: Checkpoints, *runs: TrialRun) -> None:
    for run in runs:
        keeper.trial(run)
        keeper.recorded()


def archived(folder: Path, number: int) -> xgboost.Booster:
    file = folder.parent / "models" / f"job-{number:03d}" / "output" / "model.tar.gz"
    with tarfile.open(file, "r:gz") as archive:
        [entry] = archive.getmembers()
        assert entry.name == "xgboost-model"
        content = archive.extractfile(entry)
        assert content is not None
        return xgboost.Booster(model_file=bytearray(content.read()))


def warned(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings of the log."""
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_every_model_is_archived_and_its_checkpoint_may_go(keeper: Callable[..., Checkpoints], folder: Path) -> None:
    checkpoints = keeper()
    tell(checkpoints, ended(folder, 0, 0.5), ended(folder, 1, 0.9, rounds=5))
    checkpoints.close(sweep=True)
    assert [path.name for path in sorted(folder.iterdir())] == ["job-001"], "the best one's"
    for number, rounds in ((0, 3), (1, 5)):
        expected = booster(rounds).predict(xgboost.DMatrix(ROWS))
        assert archived(folder, number).predict(xgboost.DMatrix(ROWS)).tolist() == expected.tolist()


def test_a_checkpoint_stays_until_its_model_is_archived(
    keeper: Callable[..., Checkpoints], folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder.parent / "models").write_text("a file where a folder should be")
    checkpoints = keeper()
    worse = ended(folder, 0, 0.5)
    uri = Path(str(worse.checkpoint))
    tell(checkpoints, worse, ended(folder, 1, 0.9))
    until(lambda: bool(warned(caplog)))
    (warning,) = warned(caplog)
    mentions(warning, "job")
    assert uri.exists()
    (folder.parent / "models").unlink()
    until(lambda: not uri.exists())
    assert archived(folder, 0).num_boosted_rounds() == 3
    checkpoints.close(sweep=True)
    assert len(warned(caplog)) == 1


def test_who_takes_up_a_job_archives_what_was_left_to_be(keeper: Callable[..., Checkpoints], folder: Path) -> None:
    run = ended(folder, 0, 0.5)
    run.checkpoint = None  # As the record has it, whose driver died before the removal.
    tell(keeper_of := keeper(), run, ended(folder, 1, 0.9))
    keeper_of.close(sweep=True)
    assert archived(folder, 0).num_boosted_rounds() == 3
    assert not (folder / "job-000").exists()


def test_a_spoilt_checkpoint_is_a_warning_and_no_archive(
    keeper: Callable[..., Checkpoints], folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = ended(folder, 0, 0.9)
    storage.write(str(run.checkpoint), b"no model")
    tell(keeper_of := keeper(), run, ended(folder, 1, 0.5))
    keeper_of.close(sweep=True)
    (warning,) = warned(caplog)
    mentions(warning, "job-000")
    assert archived(folder, 1).num_boosted_rounds() == 3
    assert not (folder.parent / "models" / "job-000").exists()


def test_what_failed_or_makes_no_archives_leaves_none(keeper: Callable[..., Checkpoints], folder: Path) -> None:
    failed, plain = ended(folder, 0, 0.5), ended(folder, 1, 0.5)
    failed.failure = "boom"
    tell(first := keeper(), failed)
    tell(second := keeper(**{ARCHIVES: ""}), plain)
    for checkpoints in (first, second):
        checkpoints.close(sweep=False)
    assert not (folder.parent / "models").exists()
    assert archive_of({}, "job-000") == ""
