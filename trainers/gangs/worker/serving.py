"""The training function of every gang: it opens the program and serves assignments until told to end."""

from __future__ import annotations

import os
import socket
import time
import traceback
import uuid
from functools import partial
from typing import Any

import ray
from ray.exceptions import ActorDiedError, ObjectLostError, RayActorError

from trainers.errors import (
    BrokenWorkerError,
    CheckpointError,
    DivergedError,
    GangError,
    JobError,
    UnsavedError,
    is_away,
)
from trainers.gangs.mailbox import MailboxHandle
from trainers.gangs.messages import (
    Assignment,
    GangEnded,
    GangPlaced,
    GangUp,
    Goodbye,
    Progress,
    Report,
    Served,
    StorageAway,
    one_line,
)
from trainers.gangs.program import Program, WorkerContext, never, output_of
from trainers.gangs.worker import output
from trainers.gangs.worker.halting import Halts, given_up
from trainers.gangs.worker.holdings import cores, device, ordinals
from trainers.gangs.worker.log_context import label_logs
from trainers.patient_storage import PatientStorage
from trainers.process import calm_loaded, end_surely

PROGRESS_SECONDS = 1.0
AGREE_SECONDS = 10.0


def serve(config: dict[str, Any]) -> GangEnded | None:
    """Opens the program and serves assignments until goodbye.

    Returns:
        Why the gang cannot serve, on the rank that knows it; None after a goodbye, or when its mailbox has died.
    """
    gang, mailbox = config["gang"], config["mailbox"]
    calm_loaded()
    end_surely()
    context = _worker_context(gang, mailbox)
    labels = label_logs(gang)
    if context.rank == 0 and (group := ray.util.get_current_placement_group()):
        mailbox.post(GangPlaced(gang=gang, placement_group=group.id.hex()))
    incarnation = context.broadcast(uuid.uuid4().hex)
    try:
        config["reach"].check_here(context.node_ip)
        program: Program = ray.get(config["program"])
        opening = program.open(context)
    except Exception as error:
        # The other ranks may wait in a collective for this one; the driver ends the gang.
        ended = GangEnded(
            gang=gang,
            error=one_line(error),
            traceback=traceback.format_exc(),
            # An actor or object that is gone is the cluster's fault, not the program's: another gang may open.
            final=not isinstance(error, (RayActorError, ObjectLostError)),
            logs=output.own(context.node_ip),
        )
        mailbox.post(ended)
        return ended
    here = ray.get_runtime_context()
    up = GangUp(
        gang=gang,
        workers=context.world_size,
        incarnation=incarnation,
        pids=(os.getpid(),),
        nodes=(here.get_node_id(),),
        hosts=(socket.gethostname(),),
        devices=(device(context.cpus, here.get_accelerator_ids().get("GPU", [])),),
        opening=opening,
    )
    mailbox.opened(up, context.rank, context.world_size)
    seen, served = 0, None
    while True:
        try:
            seen, order = mailbox.fetch(gang, incarnation, seen, served=served)
        except ActorDiedError:
            break  # Nobody can say anything to this gang any more: its driver is gone, or has begun anew with others.
        if isinstance(order, Goodbye):
            break
        labels.trial = order.trial_id if order is not None else ""
        served = _serve_one(gang, program, mailbox, context, order) if order is not None else None
    program.close()
    return None


def _serve_one(
    gang: str, program: Program, mailbox: MailboxHandle, context: WorkerContext, assignment: Assignment
) -> Served | None:
    """Serves an assignment; rank 0 returns what it gave, for its next fetch to take along."""
    reporter = _Reporter(gang, assignment.trial_id, mailbox)
    speaks = context.rank == 0
    try:
        segment = program.train(
            assignment, reporter if speaks else _silent, Halts(partial(mailbox.halted, gang)) if speaks else never
        )
    except GangError:
        raise  # Not the trial's own error, and nothing to agree on: Train starts another worker group.
    except UnsavedError as error:  # The other ranks have done their part.
        logs = output_of(program)
        return Served(gang=gang, trial_id=assignment.trial_id, error=one_line(error), logs=logs, away=True)
    except Exception as error:
        refusal = Served(
            gang=gang,
            trial_id=assignment.trial_id,
            error=one_line(error),
            traceback=traceback.format_exc(),
            logs=getattr(error, "logs", "") or output_of(program) or output.own(context.node_ip),
            diverged=isinstance(error, DivergedError),
            away=is_away(error),
            spoilt=isinstance(error, CheckpointError),
            broken=isinstance(error, BrokenWorkerError),
            of_job=isinstance(error, JobError),
            reports=tuple(reporter.reports),
        )
        if not mailbox.refuse(refusal, context.rank, context.world_size, AGREE_SECONDS):
            # Not the trial's own error: this worker group is broken, and Train has to start another.
            raise
        if refusal.broken:
            raise  # The driver has the trial's error and knows that the gang is lost; Train starts another.
        return None
    if not speaks:
        return None
    return Served(gang=gang, trial_id=assignment.trial_id, segment=segment, logs=output_of(program))


class _Reporter:
    """Sends what came so far once a second, so that a long rung can be watched and a short one costs nothing."""

    def __init__(self, gang: str, trial_id: str, mailbox: MailboxHandle) -> None:
        self._gang, self._trial_id, self._mailbox = gang, trial_id, mailbox
        self.reports: list[Report] = []
        self._told = 0
        self._sent = time.monotonic()

    def __call__(self, report: Report) -> None:
        self.reports.append(report)
        if time.monotonic() - self._sent >= PROGRESS_SECONDS:
            news = tuple(self.reports[self._told :])
            self._mailbox.post(Progress(gang=self._gang, trial_id=self._trial_id, reports=news))
            self._told = len(self.reports)
            self._sent = time.monotonic()


def _silent(report: Report) -> None:
    pass


def _worker_context(gang: str, mailbox: MailboxHandle) -> WorkerContext:
    from ray.train import get_context
    from ray.train.collective import broadcast_from_rank_zero

    context, here = get_context(), ray.get_runtime_context()
    held = here.get_assigned_resources()
    # The whole cluster's nodes are asked for only where they make a difference.
    nodes = ray.nodes() if held.get("GPU") and not held.get("CPU") else []
    node: dict[str, float] = next((node["Resources"] for node in nodes if node["NodeID"] == here.get_node_id()), {})
    return WorkerContext(
        rank=context.get_world_rank(),
        world_size=context.get_world_size(),
        node_ip=ray.util.get_node_ip_address(),
        cpus=cores(held, node, len(os.sched_getaffinity(0))),
        broadcast=broadcast_from_rank_zero,
        storage=PatientStorage(
            lambda reason: mailbox.post(StorageAway(gang=gang, reason=reason)),
            partial(given_up, gang, mailbox),
        ),
        gpus=ordinals(here.get_accelerator_ids().get("GPU", []), os.environ.get("CUDA_VISIBLE_DEVICES")),
        local_rank=context.get_local_rank(),
        local_world_size=context.get_local_world_size(),
        node_rank=context.get_node_rank(),
    )
