"""Jobs of XGBoost with an objective and a metric of a user's own: consent, the job file, the record and a resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from hpo.cli import app
from tests.support.own_jobs import STATIC, job_file
from tests.support.refusals import mentions
from trainers import ConfigurationError


@pytest.mark.parametrize(
    ("trainer", "names"),
    [
        ({"objective_function": "logistic"}, ("objective_function", "'logistic'")),
        ({"metric_functions": "shop.training:wrong"}, ("metric_functions", "shop.training:wrong", "list")),
        ({"metric_functions": ["shop.training:nothing"]}, ("metric_functions", "shop.training:nothing", "module")),
    ],
)
def test_what_is_no_function_is_named(package_folder: Path, trainer: dict[str, Any], names: tuple[str, ...]) -> None:
    path = job_file(package_folder, type="xgboost", hyperparameters=STATIC, **trainer)
    done = CliRunner().invoke(app, ["tune", path, "--allow-code"])
    assert isinstance(done.exception, ConfigurationError), done.output
    mentions(str(done.exception), *names)
