"""Gradients of all workers, combined into one update."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.pytorch.gradients import own_steps as own_steps
    from trainers.pytorch.gradients.allreduce import LOOK_EVERY as LOOK_EVERY, AllReduce as AllReduce
    from trainers.pytorch.gradients.peers import Alone as Alone, ProcessGroup as ProcessGroup, share as share

load_when_used(__name__)
