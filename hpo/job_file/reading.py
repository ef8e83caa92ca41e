"""Reader of job files: a checked specification, or all errors at once."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hpo.job_file import yaml_file
from hpo.job_file.known_keys import problems
from hpo.job_file.models import JobSpec
from hpo.job_file.problems import problems_beside
from hpo.job_file.yaml_file import Problem
from hpo.jobs import check_allowed


def read_job(path: str | Path, overrides: Iterable[str] = (), *, allow_code: bool = False) -> JobSpec:
    """Reads a job file. It runs nothing, and names nothing that would run later unless that is allowed.

    Args:
        path: the YAML file.
        overrides: "dotted.key=value", the value as YAML, over what the file says.
        allow_code: whether the job may name Python functions of the user's own.

    Raises:
        ConfigurationError: it is not there, not YAML, or keys or values are wrong; the message names each and its line.
            Or it names code, and that is not allowed.
    """
    file = yaml_file.read(path, overrides)
    wrong: list[Problem] = []
    try:
        spec = JobSpec.model_validate(file.values)
    except ValidationError as error:
        wrong = problems(error, JobSpec, file)
    wrong += problems_beside(file.values, wrong)
    if wrong or file.problems:
        raise file.refusal(wrong)
    check_allowed(spec.code(), allow_code, f"job file {str(path)!r}")
    spec._file = file
    return spec


def json_schema() -> dict[str, Any]:
    """The JSON schema of job files, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **JobSpec.model_json_schema(),
        "title": "Warmband tuning job",
    }
