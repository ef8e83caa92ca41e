"""The `hpo` command: what it prints, and the codes it exits with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hpo import HyperparameterTuner, cli
from hpo.cli.command import EXIT_CODES
from tests.support.command import run
from tests.support.refusals import mentions
from trainers import TrialError, datasets, extras
from trainers.errors import GangError


@pytest.fixture(autouse=True)
def no_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """No dataset lies anywhere."""
    monkeypatch.delenv("WARMBAND_DATA", raising=False)


def behind_first_line(capsys: pytest.CaptureFixture[str]) -> str:
    """Return standard error without its first line, which a command prints before it loads Ray."""
    first, _, others = capsys.readouterr().err.partition("\n")
    mentions(first, "hpo", "Ray")
    return others


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
    assert "error: " in printed.err
    mentions(
        printed.err, f"{home}/data/bank-marketing/bank-additional-full.csv", "dataset", "hpo data fetch bank-marketing"
    )


def test_data_check_of_a_file_that_is_not_the_published_one(monkeypatch, capsys, tmp_path: Path) -> None:
    (tmp_path / "bank-additional-full.csv").write_text("age;y\n30;no\n")
    assert run(monkeypatch, "data", "check", "bank-marketing", "--data-dir", str(tmp_path)) == 2
    mentions(capsys.readouterr().err, "bank-additional-full.csv", "SHA-256")


@pytest.mark.parametrize("command", ["check", "fetch"])
def test_an_unknown_dataset_names_those_there_are(monkeypatch, capsys, command: str) -> None:
    assert run(monkeypatch, "data", command, "bank") == 2
    mentions(capsys.readouterr().err, "'bank'", "bank-marketing", "bank-marketing-synthetic")


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
    ("arguments", "names"),
    [
        (["--set", "tuning.max_job=3"], ("tuning.max_job", "max_jobs")),
        (["--set", "tuning.max_jobs=many"], ("--set tuning.max_jobs=many", "tuning.max_jobs", "'many'")),
        (["--set", "tuning.max_jobs=["], ("--set tuning.max_jobs=[", "YAML")),
        (["--set", "tuning.objective_metric_name=validation:auk"], ("validation:auk", "validation:auc")),
        (["--set", "data.channels.train.path=gone.csv"], ("train", "gone.csv")),
        (["--set", "tuning.strategy=Hyperbnad"], ("Hyperbnad", "Hyperband")),
    ],
)
def test_a_wrong_job_exits_with_2_and_says_why(monkeypatch, capsys, job: Path, arguments, names) -> None:
    assert run(monkeypatch, "tune", str(job), *arguments) == 2
    error = behind_first_line(capsys)
    assert error.startswith("error: ")
    mentions(error, *names)
    assert "Traceback" not in error


def test_a_missing_job_file_exits_with_2(monkeypatch, capsys) -> None:
    assert run(monkeypatch, "tune", "no.yaml") == 2
    error = behind_first_line(capsys)
    assert error.startswith("error: ")
    mentions(error, "no.yaml", "No such file or directory")
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("raised", "code"),
    [(TrialError("bad [bold]luck[/bold]"), 1), (GangError("no gang came up"), 1), (KeyboardInterrupt(), 130)],
)
def test_a_job_that_fails_and_one_that_is_interrupted(monkeypatch, capsys, job: Path, raised, code: int) -> None:
    def fit(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(HyperparameterTuner, "fit", fit)
    assert run(monkeypatch, "tune", str(job)) == code
    assert behind_first_line(capsys) == (f"error: {raised}\n" if str(raised) else "")


def test_options_override_the_file_and_the_name_is_the_files(monkeypatch, job: Path) -> None:
    seen: dict[str, object] = {}

    def fit(self: HyperparameterTuner, inputs: dict[str, object], job_name: str | None) -> None:
        seen.update(parallel=self.max_parallel_jobs, jobs=self.max_jobs, inputs=sorted(inputs), name=job_name)

    monkeypatch.setattr(HyperparameterTuner, "fit", fit)
    sets = ["--set", "tuning.max_parallel_jobs=2", "--set", "tuning.max_jobs=9"]
    assert run(monkeypatch, "tune", str(job), *sets, "--max-parallel-jobs", "3") == 0
    assert seen == {"parallel": 3, "jobs": 9, "inputs": ["train", "validation"], "name": "tiny"}
    assert run(monkeypatch, "tune", str(job), "--name", "other") == 0
    assert seen["name"] == "other"


@pytest.mark.parametrize(("raised", "code"), [(TrialError("no such layer"), 1), (KeyboardInterrupt(), 130)])
def test_a_forecast_that_fails_and_one_that_is_interrupted(monkeypatch, capsys, job: Path, raised, code: int) -> None:
    def forecast(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr(HyperparameterTuner, "forecast", forecast)
    assert run(monkeypatch, "forecast", str(job)) == code
    assert behind_first_line(capsys) == (f"error: {raised}\n" if str(raised) else "")


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


def test_serve_names_the_command_that_installs_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "uvicorn" else object())
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert run(monkeypatch, "serve") == 2
    mentions(capsys.readouterr().err, "hpo serve", "uvicorn", "pip install 'warmband[serve]'")
