"""Trainers and training functions of a user's own: a record runs nothing of them that was not allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hpo.cli import app
from tests.support.driving import CHANNELS
from tests.support.own_jobs import (
    HERE,
    RANGES,
    STATIC,
    job_file,
    tuner,
)
from tests.support.refusals import mentions, refuses
from trainers import ConfigurationError, TorchTrainer, Trainer, XGBoostTrainer
from trainers.registry import code_in, trainer_from_json


def test_a_trainer_of_a_script_is_kept_from_other_processes(
    package_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = type("Mine", (XGBoostTrainer,), {"__module__": "__main__"})
    made = tuner(package_folder, kind(scaling=HERE, hyperparameters=STATIC), RANGES)
    with refuses(ConfigurationError, field="trainer", value="Mine", remedy=("training:Mine", "fit(wait=True)")):
        made.fit(CHANNELS, wait=False)


@pytest.mark.parametrize(
    ("trainer", "names"),
    [
        ({"trainer_class": "shop.training:NoTrainer"}, ("shop.training:NoTrainer", "trainers.Trainer")),
        ({"trainer_class": "shop.training:Nowhere"}, ("shop.training:Nowhere", "module")),
        ({"trainer_class": "shop.training:Churn", "options": {"flor": 1}}, ("options", "{'flor': 1}")),
        ({"trainer_class": "Churn"}, ("trainer_class", "'Churn'", "module")),
    ],
)
def test_what_is_no_trainer_is_named(package_folder: Path, trainer: dict[str, Any], names: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, ["tune", job_file(package_folder, **trainer), "--allow-code"])
    assert isinstance(done.exception, ConfigurationError), done.output
    mentions(str(done.exception), *names)


class Own(TorchTrainer):
    """A trainer of the user's own that runs more code than Warmband knows of."""

    def code(self) -> dict[str, str]:
        return {**super().code(), "loss": "shop.losses:mine"}


@pytest.mark.parametrize(
    ("trainer", "code"),
    [
        (XGBoostTrainer(hyperparameters=STATIC), {}),
        (TorchTrainer("json:loads"), {"train_loop_per_worker": "json:loads"}),
        (
            Own("json:loads"),
            {"trainer": f"{__name__}:Own", "train_loop_per_worker": "json:loads", "loss": "shop.losses:mine"},
        ),
    ],
)
def test_a_trainer_names_the_code_that_it_runs(trainer: Trainer, code: dict[str, str]) -> None:
    assert trainer.code() == code
    assert code_in(trainer.to_json()) == code
    again = trainer_from_json(trainer.to_json(), allow_code=True)
    assert (type(again), again.to_json()) == (type(trainer), trainer.to_json())


def test_a_record_does_not_hide_its_code() -> None:
    state = {**TorchTrainer("json:loads").to_json(), "code": {}}
    assert code_in(state) == {"train_loop_per_worker": "json:loads"}
    assert code_in({**state, "trainer": "shop.training:Churn", "code": {}})["trainer"] == "shop.training:Churn"
    with refuses(ConfigurationError, field="trainer", value="shop.training:Churn"):
        trainer_from_json({**state, "trainer": "shop.training:Churn"})
