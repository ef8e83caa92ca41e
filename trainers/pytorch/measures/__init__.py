"""Measures of a worker's steps: their communication, and a profile of a few of them."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.pytorch.measures.communication import (
        COMMUNICATION as COMMUNICATION,
        Communication as Communication,
        HostClock as HostClock,
    )
    from trainers.pytorch.measures.profiling import STEPS as STEPS, Profiled as Profiled, Profiling as Profiling
    from trainers.pytorch.measures.sharded import count_collectives as count_collectives
    from trainers.pytorch.measures.step_profile import profiled as profiled

load_when_used(__name__)
