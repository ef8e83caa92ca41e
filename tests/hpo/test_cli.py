"""The `hpo` command: what it prints, and the codes it exits with."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from hpo import HyperparameterTuner, cli
from hpo.store import Store
from trainers import TrialError, datasets
from trainers.errors import GangError

ROOT = Path(__file__).resolve().parents[2]

JOB = """
name: tiny
data:
  channels:
    train: {{path: {folder}/train.csv}}
    validation: {{path: {folder}/validation.csv}}
trainer:
  type: xgboost
  hyperparameters: {{objective: "binary:logistic", eval_metric: auc}}
tuning:
  objective_metric_name: validation:auc
  hyperband: {{max_resource: 4}}
  max_jobs: 2
  random_seed: 1
  ranges:
    eta: {{type: continuous, min: 0.1, max: 1}}
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A job file that two tiny tables belong to."""
    random = np.random.default_rng(0)
    for name, rows in {"train": 200, "validation": 100}.items():
        features = random.normal(size=(rows, 3))
        target = (features[:, 0] + 0.5 * random.normal(size=rows) > 0).astype(float)
        np.savetxt(tmp_path / f"{name}.csv", np.column_stack([target, features]), delimiter=",", fmt="%.6f")
    file = tmp_path / "job.yaml"
    file.write_text(JOB.format(folder=tmp_path))
    return file


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """No dataset lies anywhere."""
    monkeypatch.delenv("WARMBAND_DATA", raising=False)


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The command in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["hpo", *arguments])
    try:
        cli.main()
    except SystemExit as exit_:
        return int(exit_.code or 0)
    return 0


@pytest.mark.parametrize("arguments", [[], ["data"], ["tune"], ["data", "list"], ["data", "fetch"], ["data", "check"]])
def test_every_command_has_help(arguments: list[str]) -> None:
    result = CliRunner().invoke(cli.app, [*arguments, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.output


def test_help_names_the_commands_and_options() -> None:
    runner = CliRunner(env={"COLUMNS": "200", "TERM": "dumb"})
    top = runner.invoke(cli.app, ["--help"]).output
    assert "tune" in top
    assert "data" in top
    tune = runner.invoke(cli.app, ["tune", "--help"]).output
    for option in ("JOB.yaml", "--set", "--max-parallel-jobs", "--data-dir"):
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
        (["--set", "tuning.max_jobs=many"], "tuning.max_jobs: "),
        (["--set", "tuning.max_jobs=["], "the value is not YAML"),
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


# ---- as a process of its own


def hpo(*arguments: str, home: Path, scratch: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name not in ("RAY_ADDRESS", "WARMBAND_DATA")}
    environment |= {"WARMBAND_HOME": str(home)} | ({"TMPDIR": scratch} if scratch else {})
    return subprocess.run(
        [sys.executable, "-m", "hpo", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_an_unknown_key_is_one_line_in_a_terminal(job: Path, home: Path) -> None:
    job.write_text(job.read_text() + "  max_parallel_job: 2\n")
    done = hpo("tune", str(job), home=home)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        f"error: job file '{job}':\n  tuning.max_parallel_job: unknown key; did you mean 'max_parallel_jobs'?\n"
    )
    assert not home.exists()


@pytest.fixture
def short_folder() -> Iterator[str]:
    """A folder for temporary files whose path is short enough for Ray's sockets."""
    with tempfile.TemporaryDirectory(prefix="wb") as folder:
        yield folder


@pytest.mark.slow
def test_a_job_from_file_to_summary(job: Path, home: Path, short_folder: str) -> None:
    done = hpo("tune", str(job), home=home, scratch=short_folder)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert "Tuning job tiny: Hyperband, 2 trials, 1 at once" in done.stdout
    assert done.stdout.index("At most") < done.stdout.index("tiny: Completed")
    assert "best" in done.stdout
    with Store(f"sqlite:///{home}/warmband.db") as store:
        recorded = store.job("tiny")
        trials = store.trials("tiny")
    assert recorded.status == "Completed"
    assert {trial.trial_id for trial in trials} == {"tiny-000", "tiny-001", "untuned"}
    assert 0.5 < recorded.summary["best"]["value"] <= 1
    assert recorded.summary["best"]["trial"] in done.stdout
    model = Path(recorded.summary["best"]["checkpoint"])
    assert model.is_relative_to(home)
    assert model.stat().st_size > 0
    assert not list(Path(short_folder).glob("warmband-*"))

    again = hpo("tune", str(job), home=home, scratch=short_folder)
    assert again.returncode == 2
    assert "a job named 'tiny' is already in" in again.stderr
