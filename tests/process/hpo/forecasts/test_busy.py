"""When a machine is called busy: made-up processor times, and a real job beside real busy processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from hpo.forecasts.busy import Busy, Look, usage, used_by_job
from tests.support.processes import ROOT
from tests.support.refusals import mentions


def test_what_this_process_and_its_children_use_is_the_jobs() -> None:
    before = usage(joined=False)
    burn = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", burn], check=True)
    after = usage(joined=False)
    assert used_by_job(before, after) > 0.4, "a child that has ended counts"
    assert after.by_all - before.by_all > 0.4
    running = subprocess.Popen([sys.executable, "-c", burn + "\nprint()\ninput()"], stdin=-1, stdout=-1)
    try:
        assert running.stdout is not None
        running.stdout.readline()
        assert used_by_job(after, usage(joined=False)) > 0.4, "and one that runs"
    finally:
        running.communicate(b"\n", timeout=60)


@contextmanager
def loops() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Runs a block beside twice as many busy processes as there are cores."""
    ends_with_us = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(10_000))"
    command = [sys.executable, "-c", ends_with_us, str(os.getpid())]
    spinning = [subprocess.Popen(command) for _ in range(2 * (psutil.cpu_count() or 1))]
    try:
        yield spinning
    finally:
        for process in spinning:
            process.kill()
            process.wait(60)


JOB = """
    import json
    import hpo, xgboost
    from ray.train import ScalingConfig
    from hpo import HyperparameterTuner, IntegerParameter
    from trainers import XGBoostTrainer
    from trainers.datasets import load

    static = {"objective": "binary:logistic", "eval_metric": "auc", "num_round": 3}
    data = load("bank-marketing-synthetic")
    channels = {"train": data.train, "validation": data.validation}
    print("loaded", flush=True)
    input()

    def tuner():
        trainer = XGBoostTrainer(scaling=ScalingConfig(num_workers=0), hyperparameters=static)
        depths = {"max_depth": IntegerParameter(1, 3)}
        return HyperparameterTuner(trainer, "validation:auc", depths, strategy="Random", max_jobs=1, random_seed=1)

    foretold = tuner().forecast(channels)
    job = tuner()
    job.fit(channels, job_name="beside")
    summary = job.describe()["Summary"]
    again = tuner().forecast(channels)
    print(json.dumps([foretold.doubts, summary["probe"], summary["forecast"]["doubts"], again.text]))
"""


def test_a_probe_and_a_forecast_beside_busy_processes_say_so(home: Path, tmp_path: Path) -> None:
    """They run once the job has loaded what it needs, which would take the longer beside them."""
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(JOB)],
        cwd=tmp_path,
        env={**os.environ, "WARMBAND_HOME": str(home), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "loaded\n"
        with loops() as busy:
            told, _ = job.communicate("\n", timeout=400)
            assert all(process.poll() is None for process in busy)
    assert job.returncode == 0
    foretold, probe, of_job, again = json.loads(told.splitlines()[-1])
    mentions(foretold, "busy", f"{psutil.cpu_count()} cores")
    assert probe["busy"]["cores"] == psutil.cpu_count()
    assert Busy(**probe["busy"]).text in probe["verdict"]
    assert of_job == Busy(**probe["busy"]).text
    then = Busy(**probe["busy"]).used
    mentions(again, "job beside", then)
    mentions(again.replace(then, "", 1), "busy", f"{psutil.cpu_count()} cores")


def test_a_look_knows_its_own_from_others() -> None:
    """The same processes: of this test, they are its own."""
    with loops():
        look, burned = Look(joined=False), usage(joined=False)
        deadline = time.monotonic() + 120
        while used_by_job(burned, now := usage(joined=False)) < 1.0:
            assert time.monotonic() < deadline, "waited 120 s for busy processes to use a second"
            time.sleep(0.1)
        assert now.by_all > burned.by_all
        # However busy others are, these are not among them.
        found = look.until_now(1)
        used = (usage(joined=False).by_all - burned.by_all) / (now.at - burned.at)
        assert found is None or found.others < used
