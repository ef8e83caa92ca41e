"""One description of a job, from which the tuner, job files and the record work."""

from __future__ import annotations

import inspect
import json
from functools import partial
from typing import Any

from hpo import HyperparameterTuner
from hpo.job_file.models import JobSpec, Tuning
from hpo.jobs.build import search_for
from hpo.jobs.options import Options, check_option, complete, declared
from hpo.jobs.settings import SETTINGS, JobSettings
from hpo.record import JobRow
from tests.support.boosting import make
from tests.support.refusals import refuses_each
from trainers.errors import ConfigurationError


def test_a_job_is_made_again_out_of_its_record() -> None:
    settings = make(max_jobs=7, priority=3, max_wait=900, max_runtime_in_seconds=600, tags={"team": "churn"}).settings
    spec = json.loads(json.dumps(settings.to_json({}, 5)))
    row = JobRow(name="job", created_at=1.0, spec=spec, plan=settings.plan().to_json())
    again = JobSettings.of(row, allow_code=False)
    assert again.to_json({}, 5) == settings.to_json({}, 5)
    assert again.plan() == settings.plan() == again.planned


def test_a_record_of_before_an_option_has_its_default() -> None:
    settings = make().settings
    spec = {name: value for name, value in settings.to_json({}, 5).items() if name not in declared()}
    assert JobSettings.of(JobRow(name="job", created_at=1.0, spec=spec), allow_code=False).options == complete({})


def test_settings_are_a_tuners_arguments() -> None:
    settings = make(max_jobs=7, priority=3).settings
    assert HyperparameterTuner(**settings.arguments()).settings == settings


def test_a_changed_setting_lays_the_brackets_out_anew() -> None:
    settings = make(max_jobs=7).settings
    planned = settings.changed(max_jobs=9)
    assert (planned.plan().trials, settings.plan().trials) == (9, 7)
    assert settings.changed(objective_value="best").value("objective_value") == "best"


def test_each_option_is_an_argument_of_the_tuner_a_key_of_a_job_file_and_part_of_the_record() -> None:
    parameters = inspect.signature(HyperparameterTuner).parameters
    spec = make().settings.to_json({}, 1)
    keys = {"tuning": set(Tuning.model_fields), "": set(JobSpec.model_fields)}
    for name, (_, option) in declared().items():
        assert parameters[name].default == option.default
        assert spec[name] == option.default
        assert name in keys[option.group]
    assert not set(SETTINGS) & set(declared())


def test_a_value_that_an_option_cannot_have_is_named_with_its_remedy() -> None:
    refused: list[tuple[str, Any, tuple[object, ...]]] = [
        ("priority", 0, (1, 100)),
        ("priority", True, (1, 100)),
        ("priority", None, (1, 100)),
        ("max_wait", 1.5, (1,)),
        ("num_to_keep", 0, (1, "None", "checkpoint")),
        ("objective_value", "lst", ("last", "best")),
        ("storage_path", 3, ("string",)),
    ]
    refuses_each(
        [(partial(check_option, name, value), (name, value, *remedy)) for name, value, remedy in refused],
        ConfigurationError,
    )


def test_what_is_not_given_has_its_default() -> None:
    assert complete(Options(priority=2)) == {
        **{name: option.default for name, (_, option) in declared().items()},
        "priority": 2,
    }


def test_a_gang_may_be_silent_for_as_long_as_a_job_says() -> None:
    settings = make().settings
    assert search_for(settings, "job", 1).patience == 600.0
    assert search_for(settings.changed(max_silence=3600), "job", 1).patience == 3600
