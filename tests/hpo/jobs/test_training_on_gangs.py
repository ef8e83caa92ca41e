"""A single training on a gang of Ray's: a worker is killed, a driver is killed, and the model is the same."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import psutil
import pytest

from hpo import Callback, TrainingJob
from hpo.record.store import Store
from tests.support.driving import CHANNELS
from tests.support.processes import python
from tests.support.trainings import ROUNDS, boosted, outcome, training, url

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("ray_cluster")]


class Killing(Callback):
    """Kills a worker of the gang at a report, once."""

    def __init__(self, at: int) -> None:
        self.at, self.killed = at, 0

    def on_trial_report(self, trial: Any, report: Any) -> None:
        if report.step >= self.at and not self.killed:
            self.killed = workers()[0].pid
            os.kill(self.killed, signal.SIGKILL)


def workers() -> list[psutil.Process]:
    """The processes of Ray Train's workers on this machine."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        title = " ".join(process.info["cmdline"] or [])
        if title.startswith("ray::") and "Worker" in title:
            found.append(process)
    return found


DIES = """
    import os, signal, sys
    from pathlib import Path
    from hpo import Callback
    from tests.support.driving import CHANNELS
    from tests.support.trainings import boosted, training

    class Dying(Callback):
        def on_rung(self, cut):
            if cut.resource >= 10:
                os.kill(os.getpid(), signal.SIGKILL)

    folder = Path(sys.argv[1])
    training(folder, boosted(2), callbacks=(Dying(),)).fit(CHANNELS, "solo")
"""


def test_workers_and_drivers_are_killed_and_the_model_is_the_same(tmp_path: Path) -> None:
    whole, lost, died = (tmp_path / name for name in ("whole", "lost", "died"))
    for folder in (whole, lost, died):
        folder.mkdir()
    training(whole, boosted(2)).fit(CHANNELS, "solo")
    killing = Killing(ROUNDS // 2)
    training(lost, boosted(2), callbacks=(killing,)).fit(CHANNELS, "solo")
    assert killing.killed
    assert outcome(lost, "solo") == outcome(whole, "solo")
    assert python("-c", DIES, str(died)).returncode == -signal.SIGKILL
    with Store(url(died)) as store:
        (trial,) = store.trials("solo")
    assert 0 < trial.resource < ROUNDS
    TrainingJob.attach("solo", store=url(died), console=False).resume(inputs=CHANNELS)
    assert outcome(died, "solo") == outcome(whole, "solo")
