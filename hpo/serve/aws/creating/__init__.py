"""Creation of jobs from the service's requests: what they ask for in Warmband's terms, recorded and started."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.serve.aws.creating.jobs import (
        create_training_job as create_training_job,
        create_tuning_job as create_tuning_job,
        request_of as request_of,
        start_left_behind as start_left_behind,
    )
    from hpo.serve.aws.creating.settings import (
        OBJECTIVE as OBJECTIVE,
        PROGRAM as PROGRAM,
        settings_tables as settings_tables,
    )
    from hpo.serve.aws.creating.tables import Tables as Tables, read_tables as read_tables

load_when_used(__name__)
