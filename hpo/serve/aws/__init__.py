"""SageMaker's wire protocol: its own clients create, describe, list, stop and delete jobs of the record."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.serve.aws.creating import (
        read_tables as read_tables,
        settings_tables as settings_tables,
        start_left_behind as start_left_behind,
    )
    from hpo.serve.aws.door import AwsDoor as AwsDoor, refused_without_keys as refused_without_keys
    from hpo.serve.aws.errors import ServiceError as ServiceError
    from hpo.serve.aws.keys import AccessKey as AccessKey, Keys as Keys, read_keys as read_keys

load_when_used(__name__)
