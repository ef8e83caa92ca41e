"""The `hpo` command as a process of its own: what it loads, its streams, and the codes it exits with."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from hpo.record.store import JobRow, Store
from tests.support.command import run
from tests.support.processes import ROOT, python
from tests.support.refusals import mentions


def environment(home: Path) -> dict[str, str]:
    left_out = ("RAY_ADDRESS", "WARMBAND_DATA", "WARMBAND_STORE", "COLUMNS")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return kept | {"WARMBAND_HOME": str(home)}


def hpo(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return python("-m", "hpo", *arguments, environment=environment(home))


def test_an_unknown_key_is_one_line_in_a_terminal(job: Path, home: Path) -> None:
    job.write_text(job.read_text() + "  max_parallel_job: 2\n")
    done = hpo("tune", str(job), home=home)
    assert done.returncode == 2
    assert done.stdout == ""
    line = len(job.read_text().splitlines())
    first, *error = done.stderr.splitlines()
    mentions(first, "hpo tune", str(job), "Ray")
    assert error[0].startswith("error: ")
    mentions(done.stderr, str(job), f"line {line}", "tuning.max_parallel_job", "max_parallel_jobs")
    assert len(error) == 2, "the file, and what is wrong in it"
    assert not home.exists()


def test_what_trains_nothing_does_not_wait_for_ray(home: Path) -> None:
    home.mkdir()
    commands = [["--help"], ["tune", "--help"], ["jobs"], ["jobs", "--json"], ["init", f"{home}/job.yaml"], ["schema"]]
    code = f"""
import sys
from hpo.cli import main
heavy = ("ray", "xgboost", "torch", "pandas", "sklearn", "pyarrow")
for words in {commands}:
    sys.argv = ["hpo", *words]
    try:
        main()
    except SystemExit as exit:
        assert not exit.code, exit.code
    print("loaded", [name for name in heavy if name in sys.modules])
"""
    done = python("-c", code, environment=environment(home))
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.startswith("loaded")] == ["loaded []"] * len(commands)


def test_what_loads_ray_says_so_before(home: Path) -> None:
    home.mkdir()
    code = """
import sys
from hpo.cli import main

class Watched:
    def write(self, text):
        sys.stdout.write(f"{'ray' in sys.modules} {text}")

    def flush(self):
        pass

    def isatty(self):
        return False

sys.stderr = Watched()
sys.argv = ["hpo", "data", "check", "bank-marketing-synthetic"]
main()
"""
    done = python("-c", code, environment=environment(home))
    assert done.returncode == 0, done.stdout
    mentions(done.stdout.splitlines()[0], "False", "hpo data check", "Ray")


def test_a_bad_job_file_is_refused_without_waiting_for_ray(job: Path, home: Path) -> None:
    job.write_text(job.read_text().replace("max: 1}", "max: 0}"))
    code = f"""
import sys
from hpo.job_file.reading import read_job
try:
    read_job({str(job)!r})
except ValueError as error:
    print(error)
print("loaded", [name for name in ("ray", "xgboost", "torch", "pandas", "sklearn", "pyarrow") if name in sys.modules])
"""
    done = python("-c", code, environment=environment(home))
    assert done.returncode == 0, done.stderr
    mentions(done.stdout, "tuning.ranges.eta", "min", 0.1, "max", "0.0")
    assert done.stdout.splitlines()[-1] == "loaded []"


def test_a_process_exits_with_its_code(home: Path) -> None:
    done = hpo("describe", "no-such-job", home=home)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    mentions(done.stderr, "no-such-job")


def test_a_record_that_cannot_be_read_is_not_the_users_mistake(home: Path) -> None:
    home.mkdir()
    Store(f"sqlite:///{home}/warmband.db").close()
    with closing(sqlite3.connect(home / "warmband.db")) as database:
        database.execute("DROP TABLE jobs")
    done = hpo("jobs", home=home)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    mentions(done.stderr, f"sqlite:///{home}/warmband.db", "no such table")


def test_ctrl_c_exits_with_130_and_says_nothing_more(home: Path) -> None:
    home.mkdir()
    with Store(f"sqlite:///{home}/warmband.db") as store:
        store.create_job(JobRow(name="busy", created_at=time.time()))
    waiting = subprocess.Popen(
        [sys.executable, "-u", "-m", "hpo", "stop", "busy", "--wait", "100"],
        cwd=ROOT,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs the tests in the background has its children ignore Ctrl-C.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
    )
    try:
        assert waiting.stdout is not None
        mentions(waiting.stdout.readline(), "busy")
        waiting.send_signal(signal.SIGINT)
        out, errors = waiting.communicate(timeout=60)
        assert (out, len(errors.splitlines())) == ("", 1), "the line that the command began with"
        assert waiting.returncode == 130
    finally:
        waiting.kill()


@pytest.mark.parametrize("arguments", [["jobs"], ["schema"], ["data", "list"]], ids=" ".join)
def test_a_reader_that_goes_away_is_no_error(home: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "hpo", *arguments]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command, cwd=ROOT, env=environment(home), stdout=writing, stderr=subprocess.PIPE, text=True, timeout=300
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_file_that_init_writes_from_job_to_summary(monkeypatch, capsys, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    assert run(monkeypatch, "init", str(file)) == 0
    [said] = capsys.readouterr().out.splitlines()
    mentions(said, f"hpo tune {file}")
    fewer = [
        "tuning.max_jobs=2",
        "tuning.hyperband.max_resource=4",
        "tuning.max_parallel_jobs=1",
        "trainer.num_workers=0",
    ]
    arguments = ["tune", str(file), "--json", "--set", "name=tiny", *(word for key in fewer for word in ("--set", key))]
    done = hpo(*arguments, home=home)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    begun = next(line for line in done.stderr.splitlines() if "Hyperband" in line)
    mentions(begun, "tiny", 2, 1)
    assert done.stderr.index(begun) < done.stderr.index("Completed")
    described = json.loads(done.stdout)
    assert described["HyperParameterTuningJobStatus"] == "Completed"
    with Store(f"sqlite:///{home}/warmband.db") as store:
        recorded = store.job("tiny")
        trials = store.trials("tiny")
    assert recorded.status == "Completed"
    assert {trial.trial_id for trial in trials} == {"tiny-000", "tiny-001", "untuned"}
    best = recorded.summary["best"]
    assert 0.5 < best["value"] <= 1
    assert described["Summary"]["best"] == best
    assert best["trial"] in done.stderr
    model = Path(best["checkpoint"])
    assert model.is_relative_to(home)
    assert model.stat().st_size > 0

    # A process: where other tests of this one have a Ray cluster, its messages would stand beside the document.
    assert json.loads(hpo("describe", "tiny", "--json", home=home).stdout) == described
    assert run(monkeypatch, "describe", "tiny") == 0
    assert str(model) in capsys.readouterr().out
    assert run(monkeypatch, *arguments) == 2
    again = capsys.readouterr()
    assert again.out == ""
    mentions(again.err, "tiny", "job_name")
