"""Files that commands write: a first job, the schema, the reference; and how commands say ages and values."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from hpo import HyperparameterTuner
from hpo.cli.reference import OPTIONS, options_table, reference, rest_table, with_rest_table, with_sagemaker_tables
from hpo.cli.views import ago, value_text
from hpo.job_file.models import JobSpec
from hpo.job_file.reading import read_job
from hpo.serve import settings_tables
from tests.support import yaml_text
from tests.support.listed import hpo
from tests.support.refusals import mentions

ROOT = Path(__file__).resolve().parents[4]


SWEEP = """
program: train.py
method: bayes
metric: {name: accuracy, goal: maximize}
parameters:
  epochs: {value: 9}
  eta: {distribution: log_uniform_values, min: 0.01, max: 0.5}
early_terminate: {type: hyperband, max_iter: 9, s: 2}
"""


def test_import_writes_the_job_of_a_sweep_and_never_over_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").touch()
    sweep, file = tmp_path / "sweep.yaml", tmp_path / "job.yaml"
    sweep.write_text(SWEEP)
    printed = hpo("import", str(sweep), columns=300)
    told = hpo("import", str(sweep), "--out", str(file), columns=300)
    assert file.read_text() == printed
    assert told.splitlines() == [*printed.partition("\n\n")[0].splitlines(), told.splitlines()[-1]]
    mentions(told, f"hpo tune {file} --allow-code")
    tuner = HyperparameterTuner(**read_job(file, allow_code=True).arguments())
    assert tuner.plan().trials == 20
    mentions(hpo("import", str(sweep), "--out", str(file), code=2), str(file))
    assert file.read_text() == printed
    mentions(printed, "--allow-code")


def test_import_says_what_it_cannot_carry_over(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text(SWEEP.replace("  epochs: {value: 9}", "  epochs: {values: [9], probabilities: [0.5, 0.5]}"))
    told = hpo("import", str(sweep), code=2)
    mentions(told, "line 6", "parameters.epochs", "probabilities", "[0.5, 0.5]")
    mentions(hpo("import", str(tmp_path / "gone.yaml"), code=2), str(tmp_path / "gone.yaml"))


def test_init_reads_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float, default=0.1)\n"
        "p.add_argument('--epochs', type=int, default=3)\nprint(f'loss {loss}')\n"
    )
    told = hpo("init", "mine.yaml", "--from", "train.py", columns=200)
    mentions(told, "hpo tune mine.yaml --allow-code", "train.py", "epochs", "lr", "loss")
    assert list(read_job("mine.yaml", allow_code=True).tuning.ranges) == ["lr"]
    mentions(hpo("init", "mine.yaml", "--from", "train.py", code=2), "mine.yaml", "--force")
    mentions(hpo("init", "other.yaml", "--from", "gone.py", code=2), "--from", "gone.py")
    mentions(hpo("init", "other.yaml", "--run-help", code=2), "--run-help", "--from")


def test_what_init_leaves_out_has_the_value_that_it_says(tmp_path: Path) -> None:
    file = tmp_path / "job.yaml"
    hpo("init", str(file), columns=200)
    lines = file.read_text().splitlines()
    for key in ("use_gpu", "objective_type", "max_runtime_in_seconds", "storage_path", "store"):
        said = next(line.strip() for line in lines if line.strip().startswith(f"# {key}: "))
        value = yaml_text.load(said.removeprefix("# "))[key]
        fields = {name: info for model in models(JobSpec) for name, info in model.model_fields.items()}
        assert fields[key].default == value


def models(model: Any) -> list[Any]:
    options = [o for info in model.model_fields.values() for o in (info.annotation, *get_args(info.annotation))]
    inner = [option for option in options if hasattr(option, "model_fields")]
    return [model, *(each for one in inner for each in models(one))]


OUTDATED = "the page is out of date: run `make docs`"


def test_the_reference_is_as_the_code_says() -> None:
    assert (ROOT / "docs" / "reference" / "cli.md").read_text() == reference(), OUTDATED
    page = (ROOT / "docs" / "reference" / "tuner.md").read_text()
    assert page.partition(OPTIONS)[2] == options_table(), OUTDATED
    page = (ROOT / "docs" / "guides" / "serve.md").read_text()
    assert rest_table() in page, OUTDATED
    assert with_rest_table(page) == page
    sagemaker = (ROOT / "docs" / "guides" / "sagemaker-clients.md").read_text()
    assert with_sagemaker_tables(sagemaker) == sagemaker, OUTDATED
    assert settings_tables() in sagemaker, "the page has lost the place of its tables"
    [stop] = [line for line in page.splitlines() if line.startswith("| `POST` | `/api/jobs/{job}/stop` | ")]
    assert stop.endswith(" | act |")
    assert "| `GET` | `/api/jobs/{job}/gangs` | " in page


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0 s"), (59, "59 s"), (119, "119 s"), (120, "2 min"), (3600, "1 h"), (86400 * 2.5, "2 d")],
)
def test_ages(seconds: float, text: str) -> None:
    assert ago(seconds) == text


@pytest.mark.parametrize(("value", "text"), [(None, "-"), (0.5, "0.50000"), (-123.5678, "-123.56780"), (1e9, "1e+09")])
def test_values(value: float | None, text: str) -> None:
    assert value_text(value) == text
