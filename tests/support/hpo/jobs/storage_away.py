"""Jobs whose storage goes away."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from hpo import Callback
from tests.support import driving
from tests.support.driving import CHANNELS, Counting, answer, tuner
from trainers import patient_storage


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("undisturbed")
    tuner(folder).fit(CHANNELS, job_name="job")
    return answer(folder, "job")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patient_storage, "PAUSES", (0.05,))
    monkeypatch.setattr(patient_storage, "ASK_SECONDS", 0.01)


def models(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in (folder / "job").glob("job-*/*"))


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def stopped(folder: Path, at: int = 12) -> None:
    """A job that Ctrl-C stopped after some trials."""
    with pytest.raises(KeyboardInterrupt):
        tuner(folder, (Counting(at, interrupt),)).fit(CHANNELS, job_name="job")
    assert driving.row(folder).status == "Stopped"


def resume(folder: Path, *callbacks: Callback) -> None:
    attached = tuner(folder, callbacks).attach("job", store=f"sqlite:///{folder}/record.db")
    attached.callbacks = callbacks
    attached.resume(inputs=CHANNELS)


class Disk:
    """A job's folder that goes away, as a disk that is unmounted, and comes back."""

    def __init__(self, folder: Path) -> None:
        self.job, self.aside = folder / "job", folder / "aside"

    def gone(self) -> None:
        shutil.move(self.job, self.aside)

    def a_file(self) -> None:
        self.gone()
        self.job.write_text("in its place")

    def back(self) -> None:
        if self.job.is_file():
            self.job.unlink()
        shutil.move(self.aside, self.job)
