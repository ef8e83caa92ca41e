"""Job files that are written from a program's source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from hpo.job_file import job_of_program, read_job
from hpo.job_file.models import JobSpec
from hpo.job_file.trainer_models import ScriptSpec
from tests.support.refusals import mentions, refuses
from trainers.errors import ConfigurationError

Made = Callable[[str], tuple[str, JobSpec]]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Made:
    """Writes a job file of a program, and reads it as `hpo tune` does."""
    monkeypatch.chdir(tmp_path)

    def make(text: str) -> tuple[str, JobSpec]:
        (tmp_path / "train.py").write_text(text)
        job = job_of_program("train.py")
        (tmp_path / "job.yaml").write_text(job)
        return job, read_job(tmp_path / "job.yaml", allow_code=True)

    return make


def test_a_program_s_options_length_metrics_and_folders(made: Made) -> None:
    text, spec = made(
        """
import argparse
p = argparse.ArgumentParser()
p.add_argument("data", help="folder of images")
p.add_argument("--lr", type=float, default=0.1, help="learning rate")
p.add_argument("--batch-size", type=int, default=64)
p.add_argument("--epochs", type=int, default=14)
p.add_argument("--momentum", type=float, default=0.9)
p.add_argument("--dry-run", action="store_true", help="one batch: quick")
p.add_argument("--save-dir", default="out")
p.add_argument("--note", default="a: b # c")
a = p.parse_args()
for epoch in range(a.epochs):
    print(f"Epoch {epoch} train loss {1.0} val accuracy {0.5:.3f}")
"""
    )
    trainer, tuning = spec.trainer, spec.tuning
    assert isinstance(trainer, ScriptSpec)
    assert trainer.hyperparameters == {"data": "TODO", "epochs": 14, "save-dir": "{checkpoints}"}
    assert list(tuning.ranges) == ["lr", "batch-size", "momentum"]
    assert (tuning.objective_metric_name, tuning.objective_type) == ("val_accuracy", "Maximize")
    assert [each.Name for each in trainer.metric_definitions] == ["val_accuracy", "train_loss"]
    mentions(text, "# dry-run: false", "one batch: quick", "CHECK", "train.py:14", "folder of images")


def test_hydra_is_told_and_a_length_that_is_no_hyperparameter_s_usual_name(made: Made, tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "config.yaml").write_text("train: {max_iters: 400}\noptim: {lr: 1e-3}\n")
    _, spec = made(
        """
import hydra
@hydra.main(version_base=None, config_path="conf", config_name="config")
def main(cfg):
    print("iter", it, "loss", loss)
"""
    )
    assert isinstance(spec.trainer, ScriptSpec)
    assert spec.trainer.arguments is not None
    assert (spec.trainer.arguments.style, list(spec.tuning.ranges)) == ("name=value", ["optim.lr"])
    assert spec.trainer.hyperparameters == {"train.max_iters": 400}
    assert spec.tuning.objective_type == "Minimize"


def test_hydra_s_configuration_is_copied_and_its_interpolations_stay(made: Made, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "train.yaml").write_text(
        "lr: 0.1\nckpt_path: null\nlog_dir: out\noutput_dir: ${log_dir}/x\nmax_epochs: 3\n"
    )
    (tmp_path / "src" / "fit.py").write_text(
        "import hydra\n@hydra.main(config_path='../configs', config_name='train.yaml')\ndef main(cfg): ...\n"
    )
    made(
        "import argparse; argparse.ArgumentParser().add_argument('--lr', type=float)"
    )  # Its folder is the current one.
    text = job_of_program("src/fit.py")
    mentions(
        text, "entry_point: src/fit.py", "# ckpt_path: null", "log_dir: '{output}'", "# output_dir: '${log_dir}/x'"
    )


@pytest.mark.parametrize(
    "option",
    [
        *(
            "'--job_type', choices=['train', 'eval']",
            "'--model-name', choices=['a', 'b']",
            "'--dataset', choices=['a', 'b']",
        ),
        *(
            "'--device', choices=['cpu', 'cuda']",
            "'--log-level', choices=['info', 'debug']",
            "'--seed', type=int, default=3",
        ),
        *(
            "'--workers', type=int, default=4",
            "'--lr-policy', default='poly'",
            "'--image-width', type=int, default=224",
        ),
    ],
)
def test_options_that_are_no_hyperparameters_are_not_tuned(made: Made, option: str) -> None:
    program = f"import argparse\np = argparse.ArgumentParser()\np.add_argument({option})\n"
    with refuses(ConfigurationError, field="train.py", remedy="hpo init"):
        made(program)
    text, spec = made(f"{program}p.add_argument('--beta', type=float, default=0.5)")
    assert list(spec.tuning.ranges) == ["beta"]
    mentions(text.partition("ranges:")[2], "CHECK")


def test_what_cannot_be_read_is_refused(made: Made, tmp_path: Path) -> None:
    with refuses(ConfigurationError, field="--from", value="gone.py"):
        job_of_program("gone.py")
    (tmp_path / "run.sh").write_text("true")
    with refuses(ConfigurationError, field="--from", value="run.sh", remedy="--run-help"):
        job_of_program("run.sh")
    with refuses(ConfigurationError, field="train.py", remedy=("--run-help", "hpo init")):
        made("print('loss', 1)")


def test_a_program_of_a_folder_is_copied_with_what_it_imports(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "src").mkdir()
    program = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float, default=0.1)\n"
    (tmp_path / "src" / "fit.py").write_text(program)
    mentions(job_of_program("src/fit.py"), "source_dir: src", "entry_point: fit.py")
    (tmp_path / "shared.py").write_text("")
    (tmp_path / "src" / "fit.py").write_text(f"import shared\n{program}")
    mentions(job_of_program("src/fit.py"), "entry_point: src/fit.py")
