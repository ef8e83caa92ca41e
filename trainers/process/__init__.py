"""Set-up of a process: threads, scratch folders, memory, its end, and names of users' code."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.process.ending import end_surely as end_surely
    from trainers.process.named import (
        PLACE as PLACE,
        check_outside as check_outside,
        code_named as code_named,
        load as load,
        mentions as mentions,
        name_of as name_of,
    )
    from trainers.process.openmp import (
        POLICY as POLICY,
        VARIABLE as VARIABLE,
        calm_loaded as calm_loaded,
        spin_less as spin_less,
    )
    from trainers.process.scratch import Scratch as Scratch
    from trainers.process.trimming import trim as trim
    from trainers.process.uninterrupted import interrupt as interrupt, whole as whole

load_when_used(__name__)
