"""Lengths of programs in job files: each mistake is one error with its line, in the words of a program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hpo import HyperparameterTuner
from hpo.job_file import read_job, read_training
from tests.support.refusals import mentions
from trainers.errors import ConfigurationError

PROGRAM = """
trainer:
  type: script
  entry_point: train.py
  num_workers: 0
  hyperparameters: {num-epochs: 4}
"""
SEARCH = """
tuning:
  objective_metric_name: accuracy
  strategy: Bayesian
  max_jobs: 2
  ranges: {lr: {type: continuous, min: 0.1, max: 1}}
"""


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").touch()
    monkeypatch.chdir(tmp_path)


def job(folder: Path, length: str, search: str = SEARCH) -> Path:
    """A job file with a line `length:`, if one is given; it is line 7."""
    path = folder / "job.yaml"
    path.write_text(PROGRAM + (f"  length: {length}\n" if length else "") + search)
    return path


def plan(path: Path) -> int:
    """Units of a trial."""
    return HyperparameterTuner(**read_job(path, allow_code=True).arguments()).plan().max_resource


@pytest.mark.parametrize(("length", "units"), [("num-epochs", 4), ("7", 7), ("'num-epochs'", 4)])
def test_a_length_is_a_name_or_a_number(tmp_path: Path, length: str, units: int) -> None:
    assert plan(job(tmp_path, length)) == units


def test_a_tuned_length_is_that_of_the_longest_trial(tmp_path: Path) -> None:
    search = SEARCH.replace("{lr:", "{iters: {type: integer, min: 2, max: 8}, lr:")
    assert plan(job(tmp_path, "iters", search)) == 8


@pytest.mark.parametrize(
    ("length", "names"),
    [
        ("num_epochs", ("length", "'num_epochs'", "'num-epochs'")),
        ("0", ("length", 0, 1)),
        ("2.5", ("length", 2.5)),
        ("true", ("length", "max_iters")),
        ("''", ("length", "max_iters")),
        ("[num-epochs]", ("length", "max_iters")),
    ],
)
@pytest.mark.parametrize("search", [SEARCH, "training: {objective_metric_name: accuracy}"])
def test_a_wrong_length_is_one_error_with_its_line(
    tmp_path: Path, search: str, length: str, names: tuple[object, ...]
) -> None:
    path = job(tmp_path, length, search)
    with pytest.raises(ConfigurationError) as refused:
        read_training(path, allow_code=True) if "training" in search else plan(path)
    said = mentions(str(refused.value), *names)
    assert len(re.findall(r"\bline \d+", said)) == said.count("line 7") == 1, said


@pytest.mark.parametrize("strategy", ["Random", "Bayesian", "Hyperband", "ASHA"])
def test_what_is_missing_is_said_with_a_line_and_without_words_of_boosting(tmp_path: Path, strategy: str) -> None:
    path = job(tmp_path, "", SEARCH.replace("Bayesian", strategy))
    with pytest.raises(ConfigurationError) as refused:
        plan(path)
    said = mentions(str(refused.value), "trainer.length", "'num-epochs'")
    assert re.search(r"\bline \d+", said)
    assert "num_round" not in said
    assert ("max_resource" in said) is (strategy in ("Hyperband", "ASHA")), "a remedy that the strategy takes"


def test_a_part_of_several_trainers_has_its_own_length(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    program = "{type: script, entry_point: train.py, num_workers: 0, hyperparameters: {n: 4}"
    path.write_text(
        f"trainer:\n  type: several\n  trainers:\n    one: {program}, length: n}}\n    two: {program}, length: 6}}\n"
        + SEARCH.replace("{lr:", "{one.lr:").replace("accuracy", "'validation:accuracy'")
        + "data: {dataset: bank-marketing-synthetic}\n"
    )
    assert plan(path) == 6
    path.write_text(path.read_text().replace("length: n", "length: m"))
    with pytest.raises(ConfigurationError) as refused:
        plan(path)
    mentions(str(refused.value), "line 4", "trainers.one", "length", "'m'", "n")
