"""Any program as a trial: started by a launcher, tuned by its arguments, followed by its output."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.script.environment import (
        Folders as Folders,
        arguments_of as arguments_of,
        environment_of as environment_of,
    )
    from trainers.script.launchers import LAUNCHERS as LAUNCHERS, check_launcher as check_launcher
    from trainers.script.metric_lines import (
        MetricDefinitions as MetricDefinitions,
        Units as Units,
        check_definitions as check_definitions,
    )

load_when_used(__name__)
