"""Gangs: warm groups of workers that serve assignments."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.gangs.base import Gangs as Gangs
    from trainers.gangs.capacity import (
        Room as Room,
        check_beside as check_beside,
        check_capacity as check_capacity,
        largest_gang as largest_gang,
    )
    from trainers.gangs.gang import END_SECONDS as END_SECONDS, POLL_SECONDS as POLL_SECONDS
    from trainers.gangs.in_process import InHand as InHand, alone as alone, cores as cores
    from trainers.gangs.messages import (
        AUTO as AUTO,
        WORKERS as WORKERS,
        Assignment as Assignment,
        Event as Event,
        GangEnded as GangEnded,
        GangLost as GangLost,
        GangUp as GangUp,
        Progress as Progress,
        Report as Report,
        Segment as Segment,
        Served as Served,
        StorageAway as StorageAway,
        merged as merged,
        one_line as one_line,
    )
    from trainers.gangs.planning import Release as Release, next_change as next_change
    from trainers.gangs.program import (
        Program as Program,
        WorkerContext as WorkerContext,
        never as never,
        output_of as output_of,
        seconds_to_end as seconds_to_end,
        sees_peers_gpus as sees_peers_gpus,
    )
    from trainers.gangs.ray_gangs import START_ATTEMPTS as START_ATTEMPTS, RayGangs as RayGangs
    from trainers.gangs.scaling import (
        check_alone as check_alone,
        check_chosen as check_chosen,
        check_gpu_parts as check_gpu_parts,
        check_resources as check_resources,
        check_scaling as check_scaling,
        check_workers as check_workers,
        labels_of as labels_of,
        plain_scaling as plain_scaling,
        range_of as range_of,
        recorded_scaling as recorded_scaling,
        resources_per_worker as resources_per_worker,
        scaling_from as scaling_from,
        workers_of as workers_of,
    )
    from trainers.gangs.worker import (
        AGREE_SECONDS as AGREE_SECONDS,
        PROGRESS_SECONDS as PROGRESS_SECONDS,
        Halts as Halts,
        found as found,
    )

load_when_used(__name__)
