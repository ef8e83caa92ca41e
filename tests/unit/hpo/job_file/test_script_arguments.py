"""The keys of a program's arguments in a job file: what they make, and one error with its line for each mistake."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hpo.job_file import read_job
from hpo.job_file.models import JobSpec
from tests.support import yaml_text
from tests.support.refusals import refuses_each
from trainers.errors import ConfigurationError

JOB: dict[str, Any] = {
    "trainer": {"type": "script", "entry_point": "train.py", "hyperparameters": {"epochs": 3}},
    "tuning": {"objective_metric_name": "acc", "ranges": {"lr": {"type": "continuous", "min": 0.1, "max": 1}}},
}


def read(folder: Path, program: str = "", **trainer: Any) -> JobSpec:
    (folder / "train.py").write_text(program)
    values = {**JOB, "trainer": {**JOB["trainer"], "source_dir": str(folder), **trainer}}
    (folder / "job.yaml").write_text(yaml_text.dump(values))
    return read_job(folder / "job.yaml", allow_code=True)


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("--name=value", {"style": "--name=value"}),
        ({"booleans": {"lr": "--flag"}, "lists": "words"}, {"booleans": {"lr": "--flag"}, "lists": "words"}),
        (
            {"style": "file", "file": {"name": "c.yaml", "option": "--config"}},
            {"style": "file", "file": {"name": "c.yaml", "option": "--config"}},
        ),
    ],
)
def test_a_text_is_a_style_and_a_group_has_all(tmp_path: Path, given: Any, made: Any) -> None:
    trainer = read(tmp_path, arguments=given).trainer
    assert trainer.keywords()["arguments"] == made  # type: ignore[union-attr]
    assert read(tmp_path).trainer.keywords()["arguments"] is None  # type: ignore[union-attr]


def test_a_mistake_is_one_error_with_its_line(tmp_path: Path) -> None:
    def made(program: str = "", **trainer: Any) -> Any:
        try:
            return read(tmp_path, program, **trainer).arguments()
        except ConfigurationError as refusal:
            _, *lines = str(refusal).splitlines()
            assert len(lines) == 1, lines
            assert "line 1:" not in lines[0]
            raise

    truth = {"epochs": 3, "fast": True}
    refuses_each(
        [
            (partial(made, arguments="--name:value"), ("line", "trainer.arguments", "--name:value", "--name=value")),
            (partial(made, arguments=3), ("line", "trainer.arguments", 3, "--name=value")),
            (partial(made, arguments={"stile": "file"}), ("line", "trainer.arguments.stile", "style")),
            (partial(made, arguments={"booleans": "flag"}), ("line", "booleans", "'flag'", "--flag")),
            (partial(made, arguments={"lists": {"a": "commas"}}), ("line", "lists", "'commas'", "comma")),
            (partial(made, arguments={"positional": "data"}), ("line", "trainer.arguments.positional", "'data'")),
            (partial(made, arguments="file"), ("line", "file", "config.yaml")),
            (
                partial(made, arguments={"style": "file", "file": {"name": "c.txt"}}),
                ("line", "trainer.arguments.file.name", "c.txt", ".yaml"),
            ),
            (
                partial(made, arguments={"booleans": {"nestrov": "--flag"}}),
                ("line", "'nestrov'", "epochs"),
            ),
            (partial(made, working_dir=""), ("line", "trainer.working_dir", "''")),
            (partial(made, working_dir=3), ("line", "trainer.working_dir", 3)),
            (partial(made, working_dir="gone"), ("line", "working_dir", "'gone'", "source_dir")),
            (partial(made, entry_point="gone.py"), ("line", "entry_point", "'gone.py'", str(tmp_path))),
            (partial(made, source_dir="gone"), ("line", "source_dir", "gone'", "folder")),
            (partial(made, hyperparameters={"out": "{modle}"}), ("line", "'out'", "{modle}", "{model}")),
            (partial(made, hyperparameters={"out": "{hp:lrr}"}), ("line", "'out'", "{hp:lrr}", "{hp:lr}")),
            (partial(made, launcher="run {modle} {program}"), ("line", "launcher", "{modle}", "{model}")),
            (
                partial(made, "import sys; print(sys.argv)", hyperparameters=truth),
                ("line", "'fast'", True, "train.py", "booleans"),
            ),
        ],
        ConfigurationError,
    )


def test_a_range_of_a_boolean_is_checked_against_the_program(tmp_path: Path) -> None:
    spec = read(tmp_path, "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr')")
    values = {**JOB, "tuning": {**JOB["tuning"], "ranges": {"lr": {"type": "categorical", "values": [True, False]}}}}
    values["trainer"] = {**JOB["trainer"], "source_dir": str(tmp_path)}
    (tmp_path / "job.yaml").write_text(yaml_text.dump(values))
    spec = read_job(tmp_path / "job.yaml", allow_code=True)
    refuses_each([(spec.arguments, ("line", "'lr'", "booleans"))], ConfigurationError)
