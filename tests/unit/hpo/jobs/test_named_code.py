"""A job file and a record run no code that their user has not allowed, and reading one runs none at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hpo.cli.command import app
from hpo.job_file.reading import read_job
from hpo.jobs.named_code import check_allowed, in_record
from tests.support import yaml_text
from tests.support.processes import ROOT
from tests.support.refusals import mentions, refuses
from trainers import ConfigurationError, XGBoostTrainer
from trainers.pytorch.allreduce_trainer import TorchTrainer


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A job file that names a function in a module, and package, that leave a file behind when they are imported."""
    folder = tmp_path / "shop"
    folder.mkdir()
    mark = f"open({str(tmp_path / 'ran')!r}, 'a').close()\n"
    (folder / "__init__.py").write_text(mark)
    (folder / "model.py").write_text(f"{mark}def train(context):\n    pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [path for path in sys.path if path not in ("", str(tmp_path))])
    monkeypatch.delitem(sys.modules, "shop", raising=False)
    monkeypatch.delitem(sys.modules, "shop.model", raising=False)
    path = tmp_path / "job.yaml"
    path.write_text(
        yaml_text.dump(
            {
                "data": {"dataset": "digits"},
                "trainer": {"type": "torch", "train_loop": "shop.model:train", "num_workers": 0},
                "tuning": {
                    "objective_metric_name": "validation:loss",
                    "ranges": {"lr": {"type": "continuous", "min": 0.1, "max": 1.0}},
                    "hyperband": {"max_resource": 3},
                },
            }
        )
    )
    return path


@pytest.mark.parametrize("command", ["tune", "forecast"])
def test_a_job_file_that_names_code_is_refused_unless_it_is_allowed(command: str, job: Path) -> None:
    refused = CliRunner().invoke(app, [command, str(job)])
    assert isinstance(refused.exception, ConfigurationError), refused.output
    home = str(job.parent / "shop" / "model.py")
    mentions(str(refused.exception), str(job), "trainer.train_loop", "shop.model:train", home, "--allow-code")
    assert not (job.parent / "ran").exists()


def test_the_command_line_cannot_name_code_either(job: Path) -> None:
    with refuses(ConfigurationError, field=("trainer.train_loop", "os.py"), value="os:system", remedy="--allow-code"):
        read_job(job, ["trainer.train_loop=os:system"])
    with refuses(ConfigurationError, field="trainer.train_loop", value="no.where:train", remedy="--allow-code"):
        read_job(job, ["trainer.train_loop=no.where:train"])


def test_what_is_allowed_is_read_without_running_it(job: Path) -> None:
    spec = read_job(job, allow_code=True)
    assert [code.name for code in spec.code()] == ["shop.model:train"]
    assert not (job.parent / "ran").exists()
    assert spec.trainer.trainer().to_json()["options"]["train_loop_per_worker"] == "shop.model:train"
    assert (job.parent / "ran").exists()


def test_a_job_without_code_needs_no_leave(job: Path) -> None:
    assert read_job(ROOT / "experiments" / "bank-marketing.yaml").code() == []


def test_a_record_s_code_is_named() -> None:
    plain = XGBoostTrainer(hyperparameters={"eval_metric": "auc"}).to_json()
    assert in_record({"estimator": plain, "strategy": "Random"}) == []
    [own] = in_record({"estimator": plain, "strategy": "os:abort"})
    assert (own.key, own.name) == ("strategy", "os:abort")
    torch = TorchTrainer(train_loop_per_worker="json:loads").to_json()
    named = in_record({"estimator": torch, "strategy": "Hyperband"})
    check_allowed(named, True, "job 'a-job'")
    with refuses(
        ConfigurationError, field=("a-job", "train_loop_per_worker"), value="json:loads", remedy="--allow-code"
    ):
        check_allowed(named, False, "job 'a-job'")
