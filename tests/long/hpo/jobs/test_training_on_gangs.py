"""A single training on gangs of Ray's: a worker is killed, a driver is killed, and the model is the same."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from hpo import TrainingJob
from hpo.record.store import Store
from tests.support.processes import python
from tests.support.resuming import DIGITS
from tests.support.trainings import exact, outcome, training, url

pytestmark = pytest.mark.usefixtures("ray_cluster")

EPOCHS = 5
DIES = """
    import os, signal, sys
    from pathlib import Path
    from hpo import Callback
    from hpo.record.store import Store
    from tests.support.resuming import DIGITS
    from tests.support.rows import until
    from tests.support.trainings import exact, training, url

    folder = Path(sys.argv[1])

    def is_recorded():
        with Store(url(folder)) as store:
            return any(trial.resource for trial in store.trials("solo"))

    class Dying(Callback):
        def on_rung(self, cut):
            if cut.resource == 2:
                until(is_recorded)  # Rows wait a quarter of a second.
                os.kill(os.getpid(), signal.SIGKILL)

    training(folder, exact(2), checkpoint_every=1, callbacks=(Dying(),)).fit(DIGITS, "solo")
"""


def answer(folder: Path) -> dict[str, Any]:
    """What has to be alike: status, reports and the model's parameters."""
    model = TrainingJob.attach("solo", store=url(folder), allow_code=True).model()["model"]
    told = outcome(folder, "solo")
    return {**told, "model": {name: values.tolist() for name, values in model.items()}}


def folder_in(path: Path, name: str) -> Path:
    made = path / name
    made.mkdir()
    return made


def test_workers_and_drivers_are_killed_and_the_model_is_the_same(tmp_path: Path) -> None:
    whole, lost, died = (folder_in(tmp_path, name) for name in ("whole", "lost", "died"))
    training(whole, exact(2), checkpoint_every=1).fit(DIGITS, "solo")
    flag = tmp_path / "kill"
    flag.touch()
    training(lost, exact(2, kill=str(flag)), checkpoint_every=1).fit(DIGITS, "solo")
    assert not flag.exists()
    with Store(url(lost)) as store:
        (trial,) = store.trials("solo")
    assert trial.attempts == 1
    assert answer(lost) == answer(whole)
    assert python("-c", DIES, str(died)).returncode == -signal.SIGKILL
    with Store(url(died)) as store:
        (trial,) = store.trials("solo")
    assert 0 < trial.resource < EPOCHS
    TrainingJob.attach("solo", store=url(died), allow_code=True, console=False).resume(inputs=DIGITS)
    assert answer(died) == answer(whole)
