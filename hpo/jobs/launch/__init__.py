"""Drivers in processes of their own: in the background of this machine, or on a Ray cluster."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from hpo.jobs.launch.background import (
        check_can_follow as check_can_follow,
        cluster_for as cluster_for,
        end_abandoned as end_abandoned,
        start as start,
        start_apart as start_apart,
    )
    from hpo.jobs.launch.ray_jobs import (
        ADDRESS_VARIABLES as ADDRESS_VARIABLES,
        JobsServer as JobsServer,
        check_no_password as check_no_password,
        check_pinned as check_pinned,
    )
    from hpo.jobs.launch.whereabouts import (
        RECORD as RECORD,
        driver_details as driver_details,
        owner as owner,
        ray_job as ray_job,
    )

load_when_used(__name__)
