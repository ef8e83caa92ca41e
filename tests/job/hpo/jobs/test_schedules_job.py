"""A search over schedules as a job: what is trained once, recorded, kept and resumed."""

from __future__ import annotations

import re
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hpo import HyperparameterTuner, cli
from hpo.record.store import Store
from hpo.record.tables import TrialRow
from hpo.report.data import JobData
from hpo.report.pictures.lineage import parents_and_forks
from hpo.search import trials
from tests.support.driving import Counting, answer
from tests.support.refusals import mentions
from tests.support.schedules import CHANNELS, EPOCHS, tuner
from trainers import storage

TRAINED = [(2, 0), (2, 1), (2, 2), (2, 3), (2, 4), (2, 5), (3, 2), (3, 3), (3, 4), (3, 5), (4, 3), (4, 4), (4, 5)]
"""Two epochs, and four more; one more for the other two, and three more; and three more."""


def rows(folder: Path) -> dict[str, TrialRow]:
    with Store(f"sqlite:///{folder}/record.db") as store:
        return {row.trial_id: row for row in store.trials("job") if row.number >= 0}


def fitted(folder: Path, **options: Any) -> dict[str, Any]:
    EPOCHS.clear()
    tuner(folder, **options).fit(CHANNELS, job_name="job")
    return found(folder)


def found(folder: Path) -> dict[str, Any]:
    parents = [(row.parent, row.parent_resource, row.replaces) for row in rows(folder).values()]
    details = [row.details for row in rows(folder).values()]
    return {**answer(folder, "job"), "parents": parents, "details": details, "trained": own_epochs()}


def models(folder: Path) -> list[bytes]:
    return [storage.read(row.checkpoint) for row in rows(folder).values()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("whole")
    return folder, fitted(folder)


def own_epochs() -> list[tuple[int, int]]:
    """Epochs of the trials, in the order in which they were trained; in the others the rate never falls."""
    return [each for each in EPOCHS if each[0] < 6]


def test_a_common_beginning_is_trained_once(whole: tuple[Path, dict[str, Any]]) -> None:
    folder, told = whole
    assert told["trained"] == TRAINED
    assert told["status"] == ("Completed", "")
    assert told["parents"] == [("", 0, ""), ("job-000", 2, ""), ("job-001", 3, "")]
    assert told["used"] == 13
    assert len([trial for trial, _ in told["reports"] if trial != "untuned"]) == 3 * 6, "each has all of its curve"
    with Store(f"sqlite:///{folder}/record.db") as store:
        assert store.job("job").summary["resource_shared"] == 2 + 3
    assert told["details"] == [{}, {"shared_units": 2}, {"shared_units": 3}]


def test_the_models_are_those_of_trials_that_train_for_themselves(
    whole: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Apart(trials.Sharing):
        def taken(self, *arguments: Any) -> None:
            return None

    monkeypatch.setattr(trials, "Sharing", Apart)
    alone = fitted(tmp_path)
    assert len(alone["trained"]) == 3 * 6
    for name in ("trials", "reports", "best", "untuned"):
        assert alone[name] == whole[1][name]
    assert models(tmp_path) == models(whole[0])


@pytest.mark.parametrize("at", [1, 2, 5, 8, 11, 14])
def test_stopped_anywhere_and_resumed_it_gives_the_same_answer_and_trains_nothing_twice(
    whole: tuple[Path, dict[str, Any]], tmp_path: Path, at: int
) -> None:
    def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)

    EPOCHS.clear()
    with pytest.raises(KeyboardInterrupt):
        tuner(tmp_path, (Counting(at, interrupt),)).fit(CHANNELS, job_name="job")
    HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/record.db", allow_code=True).resume()
    assert {**found(tmp_path), "trained": None} == {**whole[1], "trained": None}
    assert sorted(own_epochs()) == TRAINED
    assert models(tmp_path) == models(whole[0])


def test_checkpoints_that_are_lost_are_trained_again(whole: tuple[Path, dict[str, Any]], tmp_path: Path) -> None:
    def interrupt() -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        tuner(tmp_path, (Counting(9, interrupt),)).fit(CHANNELS, job_name="job")
    for row in rows(tmp_path).values():
        shutil.rmtree(tmp_path / "job" / row.trial_id, ignore_errors=True)
    HyperparameterTuner.attach("job", store=f"sqlite:///{tmp_path}/record.db", allow_code=True).resume()
    for name in ("status", "trials", "reports", "best"):
        assert found(tmp_path)[name] == whole[1][name]


def test_what_trials_lend_goes_with_the_job(tmp_path: Path) -> None:
    kept: list[list[str]] = []

    def look() -> None:
        kept.append(sorted(path.name for path in (tmp_path / "job" / "job-000").glob("*")))

    fitted(tmp_path, num_to_keep=1, callbacks=(Counting(8, look),))
    assert kept[0][0].startswith("000002"), "the third may still go on from it"
    [row] = [row for row in rows(tmp_path).values() if row.checkpoint]
    assert sorted(path.name for path in (tmp_path / "job").glob("job-*")) == [row.trial_id]
    assert len(list((tmp_path / "job" / row.trial_id).glob("*"))) == 1


def test_summary_page_and_commands_tell_what_was_shared(whole: tuple[Path, dict[str, Any]]) -> None:
    folder, _ = whole
    store = f"sqlite:///{folder}/record.db"
    with Store(store) as opened:
        data = JobData.read(opened, "job")
    assert (data.used, data.possible) == (13, 18)
    figure = parents_and_forks(data)
    assert figure is not None
    mentions(figure.title, "2", "checkpoint")
    run = CliRunner(env={"COLUMNS": "200", "TERM": "dumb"})
    assert re.search(r"job-001\D+3\b", run.invoke(cli.app, ["trials", "job", "--store", store]).output)
    told = HyperparameterTuner.attach("job", store=store, allow_code=True).describe()
    assert told["Summary"]["resource_shared"] == 5
    assert told["TakesEffect"] == {"decay_at": "decay_at"}


def test_settings_come_back_out_of_the_record(whole: tuple[Path, dict[str, Any]]) -> None:
    made = HyperparameterTuner.attach("job", store=f"sqlite:///{whole[0]}/record.db", allow_code=True)
    assert made.settings.takes_effect == {"decay_at": "decay_at"}
    assert made.settings.arguments()["takes_effect"] == {"decay_at": "decay_at"}
