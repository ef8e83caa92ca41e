"""The `hpo` command: what it prints, and the codes it exits with."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hpo import HyperparameterTuner, cli
from hpo.cli.command import EXIT_CODES
from hpo.record.store import JobRow, Store
from tests.support.command import run
from tests.support.processes import ROOT, python
from tests.support.small_job import write_job
from trainers import TrialError, datasets
from trainers.errors import GangError


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job file that two tiny tables belong to."""
    return write_job(tmp_path)


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """No dataset lies anywhere."""
    monkeypatch.delenv("WARMBAND_DATA", raising=False)


COMMANDS = [
    [],
    ["data"],
    *([name] for name in ("init", "tune", "forecast", "simulate", "jobs", "describe", "trials", "stop", "schema")),
]
COMMANDS += [["data", name] for name in ("list", "fetch", "check")]


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_every_command_has_help_that_fits_80_columns(arguments: list[str]) -> None:
    result = CliRunner(env={"COLUMNS": "80", "TERM": "dumb"}).invoke(cli.app, [*arguments, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.output
    assert max(map(len, result.output.splitlines())) <= 80
    assert "<bool>" not in result.output
    # Not one word is cut: what each command, option and exit code is for can be read.
    assert "…" not in result.output


def test_help_names_the_commands_options_and_exit_codes() -> None:
    runner = CliRunner(env={"COLUMNS": "200", "TERM": "dumb"})
    top = runner.invoke(cli.app, ["--help"]).output
    for name in (word for words in COMMANDS for word in words[:1]):
        assert f" {name} " in top
    for code, meaning in EXIT_CODES.items():
        assert f"{code:<5}{meaning}" in top
    tune = runner.invoke(cli.app, ["tune", "--help"]).output
    for option in (
        "JOB.yaml",
        "--set",
        "--max-parallel-jobs",
        "--data-dir",
        "--store",
        "--json",
        "$ hpo tune job.yaml",
    ):
        assert option in tune


def test_help_ends_well_and_nothing_at_all_asks_for_a_command(monkeypatch, capsys) -> None:
    assert run(monkeypatch, "--help") == 0
    capsys.readouterr()
    assert run(monkeypatch) == 2
    assert "tune" in "".join(capsys.readouterr())


def test_data_list_names_the_datasets_and_their_licences() -> None:
    result = CliRunner().invoke(cli.app, ["data", "list"])
    assert result.exit_code == 0
    for info in datasets.DATASETS.values():
        line = next(line for line in result.output.splitlines() if line.startswith(f"{info.name} "))
        assert f"{info.rows:,}" in line
        assert info.licence in line


def test_data_check_of_what_is_not_there(monkeypatch, capsys, home: Path) -> None:
    assert run(monkeypatch, "data", "check", "bank-marketing") == 2
    printed = capsys.readouterr()
    assert f"{home}/data/bank-marketing/bank-additional-full.csv: not found" in printed.out
    assert printed.err.startswith("error: dataset 'bank-marketing' is not whole here")
    assert "hpo data fetch bank-marketing" in printed.err


def test_data_check_of_a_file_that_is_not_the_published_one(monkeypatch, capsys, tmp_path: Path) -> None:
    (tmp_path / "bank-additional-full.csv").write_text("age;y\n30;no\n")
    assert run(monkeypatch, "data", "check", "bank-marketing", "--data-dir", str(tmp_path)) == 2
    assert "its SHA-256 is" in capsys.readouterr().out


def test_data_check_of_what_is_generated(monkeypatch, capsys) -> None:
    assert run(monkeypatch, "data", "check", "bank-marketing-synthetic") == 0
    assert "nothing to check" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["check", "fetch"])
def test_an_unknown_dataset_names_those_there_are(monkeypatch, capsys, command: str) -> None:
    assert run(monkeypatch, "data", command, "bank") == 2
    assert "give one of 'bank-marketing', 'bank-marketing-synthetic'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bogus"], "No such command 'bogus'"),
        (["tune"], "Missing argument"),
        (["tune", "job.yaml", "--max-parallel-jobs", "0"], "--max-parallel-jobs"),
        (["tune", "job.yaml", "--bogus"], "No such option"),
        (["data", "check"], "Missing argument"),
    ],
)
def test_a_wrong_command_line_exits_with_2(monkeypatch, capsys, arguments: list[str], message: str) -> None:
    assert run(monkeypatch, *arguments) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--set", "tuning.max_job=3"], "tuning.max_job: unknown key; did you mean 'max_jobs'?"),
        (["--set", "tuning.max_jobs=many"], "--set tuning.max_jobs=many: tuning.max_jobs is 'many'; give a whole"),
        (["--set", "tuning.max_jobs=["], "--set tuning.max_jobs=[: the value is not YAML"),
        (["--set", "tuning.objective_metric_name=validation:auk"], "did you mean 'validation:auc'"),
        (["--set", "data.channels.train.path=gone.csv"], "channel 'train': "),
        (["--set", "tuning.strategy=Hyperbnad"], "did you mean 'Hyperband'"),
    ],
)
def test_a_wrong_job_exits_with_2_and_says_why(monkeypatch, capsys, job: Path, arguments, message: str) -> None:
    assert run(monkeypatch, "tune", str(job), *arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert message in error
    assert "Traceback" not in error


def test_a_missing_job_file_exits_with_2(monkeypatch, capsys) -> None:
    assert run(monkeypatch, "tune", "no.yaml") == 2
    assert capsys.readouterr().err == "error: job file 'no.yaml' cannot be read: No such file or directory\n"


@pytest.mark.parametrize(
    ("raised", "code"),
    [(TrialError("bad [bold]luck[/bold]"), 1), (GangError("no gang came up"), 1), (KeyboardInterrupt(), 130)],
)
def test_a_job_that_fails_and_one_that_is_interrupted(monkeypatch, capsys, job: Path, raised, code: int) -> None:
    def fit(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(HyperparameterTuner, "fit", fit)
    assert run(monkeypatch, "tune", str(job)) == code
    assert capsys.readouterr().err == (f"error: {raised}\n" if str(raised) else "")


def test_options_override_the_file_and_the_name_is_the_files(monkeypatch, job: Path) -> None:
    seen: dict[str, object] = {}

    def fit(self: HyperparameterTuner, inputs: dict[str, object], job_name: str | None) -> None:
        seen.update(parallel=self.max_parallel_jobs, jobs=self.max_jobs, inputs=sorted(inputs), name=job_name)

    monkeypatch.setattr(HyperparameterTuner, "fit", fit)
    sets = ["--set", "tuning.max_parallel_jobs=2", "--set", "tuning.max_jobs=9"]
    assert run(monkeypatch, "tune", str(job), *sets, "--max-parallel-jobs", "3") == 0
    assert seen == {"parallel": 3, "jobs": 9, "inputs": ["train", "validation"], "name": "tiny"}


def test_a_forecast_says_what_the_job_would_take_and_runs_none(monkeypatch, capsys, job: Path) -> None:
    here = "  type: xgboost\n  num_workers: 0\n  resources_per_worker: {CPU: 1}\n"
    text = job.read_text().replace("  type: xgboost\n", here)
    job.write_text(text + "cost: {per_worker_hour: 3.6, currency: EUR}\n")
    assert run(monkeypatch, "forecast", str(job), "--set", "cost.max_cost=0.0000001") == 0
    printed = capsys.readouterr().out
    assert "trials at each rung" in printed
    assert re.search(r"Forecast from the probe: about \d+ s and \d+ worker-seconds, ", printed)
    assert "It ends before, at max_cost, 0.00000010 EUR." in printed
    assert run(monkeypatch, "forecast", str(job), "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert [len(said["plan"]["brackets"]), said["forecast"]["source"]] == [1, "probe"]
    expected, at_most = said["forecast"]["expected"], said["forecast"]["at_most"]
    assert 0 < expected["cost"] <= at_most["cost"] == pytest.approx(at_most["worker_seconds"] / 1000)
    with Store() as store:
        assert store.jobs() == []


@pytest.mark.parametrize(("raised", "code"), [(TrialError("no such layer"), 1), (KeyboardInterrupt(), 130)])
def test_a_forecast_that_fails_and_one_that_is_interrupted(monkeypatch, capsys, job: Path, raised, code: int) -> None:
    def forecast(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(HyperparameterTuner, "forecast", forecast)
    assert run(monkeypatch, "forecast", str(job)) == code
    assert capsys.readouterr().err == (f"error: {raised}\n" if str(raised) else "")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["jobs"], 0),
        (["describe", "no-such-job"], 2),
        (["stop", "no-such-job"], 2),
        (["jobs", "--store", "sqlite:////no/such/folder/x.db"], 2),
        (["jobs", "--bogus"], 2),
        (["bogus"], 2),
        (["tune", "no.yaml"], 2),
    ],
)
def test_exit_codes(monkeypatch, capfd, arguments: list[str], code: int) -> None:
    assert run(monkeypatch, *arguments) == code
    error = capfd.readouterr().err
    assert "Traceback" not in error
    assert bool(error) == bool(code)


def test_a_job_whose_every_trial_fails_exits_with_1(monkeypatch, capsys, job: Path) -> None:
    # XGBoost finds only when it trains that these are more constraints than features.
    constraints = f"({','.join('1' * 99)})"
    wrong = [
        f"trainer.hyperparameters.monotone_constraints='{constraints}'",
        "tuning.max_jobs=1",
        "trainer.num_workers=0",
    ]
    assert run(monkeypatch, "tune", str(job), *(word for key in wrong for word in ("--set", key))) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: tuning job tiny failed: every trial failed")
    assert "Traceback" not in error
    assert run(monkeypatch, "describe", "tiny") == 0
    assert "tiny  Failed" in capsys.readouterr().out
    assert run(monkeypatch, "trials", "tiny") == 0
    assert "tiny-000: " in capsys.readouterr().out


# ---- as a process of its own


def environment(home: Path) -> dict[str, str]:
    left_out = ("RAY_ADDRESS", "WARMBAND_DATA", "WARMBAND_STORE", "COLUMNS")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return kept | {"WARMBAND_HOME": str(home)}


def hpo(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    return python("-m", "hpo", *arguments, environment=environment(home))


@pytest.mark.process
def test_an_unknown_key_is_one_line_in_a_terminal(job: Path, home: Path) -> None:
    job.write_text(job.read_text() + "  max_parallel_job: 2\n")
    done = hpo("tune", str(job), home=home)
    assert done.returncode == 2
    assert done.stdout == ""
    line = len(job.read_text().splitlines())
    assert done.stderr == (
        f"error: job file '{job}':\n  line {line}: tuning.max_parallel_job: unknown key; "
        "did you mean 'max_parallel_jobs'?\n"
    )
    assert not home.exists()


@pytest.mark.process
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


@pytest.mark.process
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
    assert "tuning.ranges.eta: min is 0.1 and max is 0.0; give a min that is not above max" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == "loaded []"


@pytest.mark.process
def test_a_process_exits_with_its_code(home: Path) -> None:
    done = hpo("describe", "no-such-job", home=home)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: no job named 'no-such-job'")


@pytest.mark.process
def test_a_record_that_cannot_be_read_is_not_the_users_mistake(home: Path) -> None:
    home.mkdir()
    Store(f"sqlite:///{home}/warmband.db").close()
    with closing(sqlite3.connect(home / "warmband.db")) as database:
        database.execute("DROP TABLE jobs")
    done = hpo("jobs", home=home)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: the store at sqlite:///{home}/warmband.db cannot be read: no such table")


@pytest.mark.process
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
        assert waiting.stdout.readline().startswith("Asked busy to stop")
        waiting.send_signal(signal.SIGINT)
        assert waiting.communicate(timeout=60) == ("", "")
        assert waiting.returncode == 130
    finally:
        waiting.kill()


@pytest.mark.process
@pytest.mark.parametrize("arguments", [["jobs"], ["schema"], ["data", "list"]], ids=" ".join)
def test_a_reader_that_goes_away_is_no_error(home: Path, arguments: list[str]) -> None:
    command = [sys.executable, "-m", "hpo", *arguments]
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        command, cwd=ROOT, env=environment(home), stdout=writing, stderr=subprocess.PIPE, text=True, timeout=120
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.process
def test_the_file_that_init_writes_from_job_to_summary(monkeypatch, capsys, home: Path, tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    assert run(monkeypatch, "init", str(file)) == 0
    assert capsys.readouterr().out == f"Wrote {file}. Run it with: hpo tune {file}\n"
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
    assert "Tuning job tiny: Hyperband, 2 trials, 1 at once" in done.stderr
    assert done.stderr.index("At most") < done.stderr.index("tiny: Completed")
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

    assert run(monkeypatch, "describe", "tiny", "--json") == 0
    assert json.loads(capsys.readouterr().out) == described
    assert run(monkeypatch, "describe", "tiny") == 0
    assert str(model) in capsys.readouterr().out
    assert run(monkeypatch, *arguments) == 2
    again = capsys.readouterr()
    assert again.out == ""
    assert "a job named 'tiny' is already in" in again.err
