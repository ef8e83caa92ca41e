"""Reader of job files: a checked specification, or all errors at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from hpo.job_file import yaml_file
from hpo.job_file.known_keys import problems
from hpo.job_file.models import TRAINS_ONCE, JobSpec, TrainingSpec
from hpo.job_file.problems import problems_beside
from hpo.job_file.yaml_file import JobFile, JobFileError, Problem
from hpo.jobs import check_allowed

Spec = TypeVar("Spec", JobSpec, TrainingSpec)


def read_job(path: str | Path, overrides: Iterable[str] = (), *, allow_code: bool = False) -> JobSpec:
    """Reads the file of a tuning job. It runs nothing, and names nothing that would run later unless that is allowed.

    Args:
        path: the YAML file.
        overrides: "dotted.key=value", the value as YAML, over what the file says.
        allow_code: whether the job may name Python functions of the user's own.

    Raises:
        ConfigurationError: it is not there, not YAML, or keys or values are wrong; the message names each and its line.
            Or it names code, and that is not allowed.
    """
    return _checked(yaml_file.read(path, overrides), JobSpec, f"job file {str(path)!r}", allow_code)


def read_training(path: str | Path, overrides: Iterable[str] = (), *, allow_code: bool = False) -> TrainingSpec:
    """Reads the file of a single training, or what of a tuning job's file is about one; as `read_job`."""
    return _checked(yaml_file.read(path, overrides), TrainingSpec, f"job file {str(path)!r}", allow_code)


def read_any(path: str | Path, overrides: Iterable[str] = (), *, allow_code: bool = False) -> JobSpec | TrainingSpec:
    """Reads a job file, as `read_job`: one without the group `tuning` is of a single training."""
    file = yaml_file.read(path, overrides)
    return _checked(file, _model_of(file.values), f"job file {str(path)!r}", allow_code)


def read_text(text: str, *, allow_code: bool = False) -> JobSpec | TrainingSpec:
    """Read the text of a job file, as `read_any` reads a file.

    Args:
        text: of the job file, in YAML or JSON.
        allow_code: whether the job may name Python functions of the user's own.

    Raises:
        ConfigurationError: the text is not YAML, or keys or values are wrong; the message names each and its line.
    """
    file = yaml_file.parsed(text, "")
    return _checked(file, _model_of(file.values), "the job file", allow_code)


def example_file() -> str:
    """Return the text of a commented job file that runs as it is, on generated data."""
    return files("hpo.job_file").joinpath("example.yaml").read_text(encoding="utf-8")


def problems_of(values: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with a job file's values, by their keys with dots between them; code is allowed.

    Args:
        values: of the file, by its keys.
    """
    file = JobFile(path="", values=dict(values))
    try:
        _checked(file, _model_of(values), "", True)
    except JobFileError as error:
        return error.fields
    return {}


def check_made(file: JobFile) -> None:
    """Refuse a job file that a command made of something else, as the reader of tuning jobs would; code is allowed.

    Raises:
        JobFileError: naming all that is wrong.
    """
    _checked(file, JobSpec, "", True)


def _model_of(values: Mapping[str, Any]) -> type[JobSpec | TrainingSpec]:
    return JobSpec if "tuning" in values else TrainingSpec


def _checked(file: JobFile, model: type[Spec], about: str, allow_code: bool) -> Spec:
    if model is JobSpec and "training" in file.values and "tuning" not in file.values:
        told = "training: this is the file of a single training, which hpo train runs; for hpo tune give tuning instead"
        raise file.refusal([Problem(keys=("training",), text=told)])
    wrong: list[Problem] = []
    once = issubclass(model, TrainingSpec)
    try:
        spec = model.model_validate(file.values, context={TRAINS_ONCE: once})
    except ValidationError as error:
        wrong = problems(error, model, file)
    wrong += problems_beside(file.values, wrong, once=once)
    if wrong or file.problems:
        raise file.refusal(wrong)
    check_allowed(spec.code(), allow_code, about)
    spec._file = file
    return spec


def json_schema(*, training: bool = False) -> dict[str, Any]:
    """The JSON schema of job files, for editors.

    Args:
        training: of those of single trainings.
    """
    model, title = (TrainingSpec, "Warmband training job") if training else (JobSpec, "Warmband tuning job")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **model.model_json_schema(),
        "title": title,
    }
