"""A tuning job as a YAML file."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.job_file.first_job import job_of_program as job_of_program
    from hpo.job_file.known_keys import Key as Key, keys as keys
    from hpo.job_file.larger_limits import limits_of as limits_of, point_of as point_of
    from hpo.job_file.models import JobSpec as JobSpec, TrainingSpec as TrainingSpec
    from hpo.job_file.reading import (
        example_file as example_file,
        json_schema as json_schema,
        problems_of as problems_of,
        read_any as read_any,
        read_job as read_job,
        read_text as read_text,
        read_training as read_training,
    )
    from hpo.job_file.sweep import job_of_sweep as job_of_sweep
    from hpo.job_file.yaml_file import MOST_BYTES as MOST_BYTES, JobFileError as JobFileError

load_when_used(__name__)
