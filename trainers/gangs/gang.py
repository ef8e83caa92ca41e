"""A gang: a warm worker group, one long-lived Ray Train run whose training function serves assignments."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
import time
import traceback
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import ray
import ray.train
from ray.exceptions import ActorDiedError, GetTimeoutError, RayError
from ray.train import ScalingConfig, UserCallback
from ray.util import placement_group_table, remove_placement_group
from ray.util.placement_group import PlacementGroup

from trainers import steady
from trainers.cluster import Reach
from trainers.errors import DivergedError, GangError, StorageError, UnsavedError, in_words
from trainers.gangs import output
from trainers.gangs.log_context import label_logs
from trainers.gangs.mailbox import MailboxHandle
from trainers.gangs.messages import (
    Assignment,
    GangEnded,
    GangLost,
    GangUp,
    Goodbye,
    Progress,
    Report,
    Segment,
    Served,
    StorageAway,
)
from trainers.patient_storage import PatientStorage
from trainers.process import Scratch, calm_loaded, end_surely, whole

logger = logging.getLogger(__name__)

# Ray Train polls its workers this often; it bounds how soon a gang's end or a dead worker is seen. The default of
# 2 s adds 2 to 4 s to each, and polling much faster costs the processor time that training needs.
POLL_SECONDS = "0.5"
PROGRESS_SECONDS = 1.0
AGREE_SECONDS = 10.0
SETTLED_SECONDS = 2.0

HALT_SECONDS = 0.5
"""How often, at most, a worker asks whether to halt: it bounds what a long rung pays for that."""

ANSWER_SECONDS = 0.05
"""How long it waits for the answer; one that comes later is looked at when it would ask again."""

ASKED_SECONDS = 5.0
"""How long a worker that waits for storage waits for the answer whether it is to go on waiting."""

END_SECONDS = 30.0
"""How long a gang that was told to end may take before it is ended by force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerContext:
    """Where a worker stands in its gang.

    Args:
        rank: 0 to `world_size` - 1; fixed for an incarnation, and what shards are dealt by.
        world_size: workers in the gang.
        node_ip: address of this worker's node.
        cpus: processor cores the worker may use.
        broadcast: gives every rank what rank 0 hands in (small values; every rank has to call it).
        in_hand: it is the user's own process, in which nothing may be changed that the user could notice.
        storage: where its checkpoints are read and written.
    """

    rank: int
    world_size: int
    node_ip: str
    cpus: int
    broadcast: Callable[[Any], Any]
    in_hand: bool = False
    storage: PatientStorage = field(default_factory=PatientStorage)


def never() -> bool:
    """Nobody halts it."""
    return False


class Program(Protocol):
    """What each worker of a gang runs; it is pickled to the workers and opened there once."""

    def open(self, context: WorkerContext) -> dict[str, float]:
        """Loads this worker's shards and joins its peers; returns the seconds each step took."""

    def train(
        self, assignment: Assignment, on_report: Callable[[Report], None], halted: Callable[[], bool] = never
    ) -> Segment:
        """Serves one assignment; every rank calls it, rank 0's reports and segment are the gang's.

        Args:
            assignment: what is to be trained.
            on_report: is told of each report.
            halted: asked before a report, on rank 0: whether the assignment is to end with it. All ranks then end at
                the same report, and the segment is as one of an assignment until there.

        Raises:
            DivergedError: the trial's numbers are not finite any more; every rank has it alike.
            GangError: what the gang needs beside its workers is gone: it starts again and serves the assignment again.
            StorageError: its checkpoint cannot be read; UnsavedError: on rank 0, the new one cannot be written.
            Exception: the trial's own error, which every rank has alike.
        """

    def close(self) -> None:
        """Leaves the peers."""


class Gang:
    """One gang as its driver sees it: start, assign, close. What happens to it comes as events from the mailbox.

    A worker that dies takes its peers with it: Ray Train's failure policy starts the worker group anew, and the gang
    says `GangLost`, then `GangUp` with a new incarnation.

    Args:
        name: unique on the cluster.
        program: what its workers run.
        scaling: how many workers, and what each needs.
        mailbox: where its events go.
        reach: what its workers have to see of the driver's machine.
    """

    def __init__(
        self, name: str, program: Program, scaling: ScalingConfig, mailbox: MailboxHandle, reach: Reach | None = None
    ) -> None:
        self.name = name
        self.scaling = scaling
        self.placement_group = ""
        self.held_since: float | None = None
        self._mailbox = mailbox
        self._program = program
        self._reach = reach or Reach()
        self._others: frozenset[str] = frozenset()
        self._closing = threading.Event()
        self._killed = False
        self.thread = threading.Thread(target=self._run, name=f"gang-{name}", daemon=True)

    @property
    def workers(self) -> int:
        """How many workers it has."""
        return int(self.scaling.num_workers)  # type: ignore[arg-type]  # a range is refused by Trainer

    @property
    def ended(self) -> bool:
        """Whether its Train run is over and everything it held is released."""
        return not self.thread.is_alive()

    def start(self) -> None:
        """Starts the workers in the background; `GangUp` tells when they are ready."""
        self._others = frozenset(placement_group_table())
        with whole():
            self.thread.start()

    def observe(self) -> None:
        """Looks, while the gang starts, for the moment at which its workers' resources are held."""
        if self.held_since is not None:
            return
        for group, row in placement_group_table().items():
            if group not in self._others and self._is_mine(group, row):
                self.placement_group, self.held_since = group, steady.now()

    def goodbye(self) -> None:
        """Tells the gang to end after what it is serving, now or as soon as it is up; does not wait."""
        self._closing.set()
        self._mailbox.order(self.name, "", Goodbye())

    def kill(self) -> None:
        """Ends Train's controller, up or still starting, and with it the run and its workers; does not wait.

        For a cluster that ends with the job; in others Train would leave an actor behind, which looks after controllers
        (ray 2.60). And there it is needed: a run that is not over when Ray ends may turn to Ray once more, which ends
        this process without a word.
        """
        self._closing.set()
        if not self._killed:
            self._killed = True
            self._mailbox.kill(self.name)

    def end_by_force(self) -> None:
        """Takes the workers' resources away, which ends them, up or still starting; Train then cleans up itself.

        Call it until `join` says that the gang is over: it waits for its moment. Workers that are created just when
        their placement group goes are never scheduled nor refused (ray 2.60), and Train would wait for them for ever.
        """
        self.observe()
        if self.held_since is None or steady.now() - self.held_since < SETTLED_SECONDS:
            return
        with contextlib.suppress(Exception):  # It may be gone by now.
            remove_placement_group(PlacementGroup(ray.PlacementGroupID.from_hex(self.placement_group)))

    def join(self, seconds: float) -> bool:
        """Waits up to `seconds` for the gang to be over; returns whether it is."""
        self.thread.join(seconds)
        return self.ended

    def _is_mine(self, group: str, row: dict[str, Any]) -> bool:
        """Whether a placement group that is new since the start holds this gang's resources.

        One that waits for room does not count: Train waits for it until its deadline, removed or not.
        """
        bundles = [dict(bundle) for bundle in row["bundles"].values()]
        mine = [resources_per_worker(self.scaling)] * self.workers
        # A placement group's id ends in the id of the job that made it.
        return row["state"] == "CREATED" and group.endswith(ray.get_runtime_context().get_job_id()) and bundles == mine

    def _run(self) -> None:
        # Imported here: `trainers.gangs.gang` is imported by every worker, and they need none of it.
        from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

        os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", POLL_SECONDS)
        # A gang is started where it fits; if others were quicker, Train gives up after this long, and `RayGangs` looks
        # for room again.
        os.environ.setdefault("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "15")
        # One process fewer to start; nothing here asks it about nodes that are to be taken away.
        os.environ.setdefault("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")
        if self._closing.is_set():
            return  # Later it is too late to turn round: `kill` ends what was begun.
        scratch = Scratch(self.name)
        train: Any = ray.train  # Its annotations are those of Train's first version.
        trainer = DataParallelTrainer(
            serve,
            train_loop_config={
                "gang": self.name,
                "program": self._program,
                "mailbox": self._mailbox,
                "reach": self._reach,
            },
            scaling_config=self.scaling,
            run_config=train.RunConfig(
                name=self.name,
                storage_path=scratch.path,
                # A start that fails is reported, not repeated for ever; a worker that dies later is replaced.
                failure_config=train.FailureConfig(max_failures=-1, controller_failure_limit=0),
                callbacks=[_TellLosses(self.name, self._mailbox)],
            ),
        )
        try:
            result: Any = trainer.fit()
            ended = result.return_value or GangEnded(gang=self.name)
        except BaseException as error:  # A cluster that is shut down under it raises SystemExit.
            ended = GangEnded(gang=self.name, error=_innermost(error), traceback=traceback.format_exc())
        finally:
            scratch.close()
        # After a goodbye nobody listens, and Ray may be shut down: to touch it then would end this process.
        if not self._closing.is_set():
            self._mailbox.post(ended)


def resources_per_worker(scaling: ScalingConfig) -> dict[str, float]:
    """What one worker needs, as Ray Train fills it in: one CPU, or one GPU with `use_gpu`, if nothing is said."""
    given: Any = scaling.resources_per_worker
    if given is None:
        given = {"GPU": 1.0} if scaling.use_gpu else {"CPU": 1.0}
    # By a little of a resource that nodes with such an accelerator have, Ray puts a worker on one of them.
    kind = {f"accelerator_type:{scaling.accelerator_type}": 0.001} if scaling.accelerator_type else {}
    named = {name: float(amount) for name, amount in given.items() if amount}
    return {**({"GPU": 1.0} if scaling.use_gpu else {}), **kind, **named}


class _TellLosses(UserCallback):
    """Runs in Ray Train's controller: tells the driver at once that workers died."""

    def __init__(self, gang: str, mailbox: MailboxHandle) -> None:
        self._gang = gang
        self._mailbox = mailbox

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Unpickled in the controller's process before anywhere else: the mailbox keeps the first that says so.
        end_surely()
        self.__dict__.update(state)
        self._mailbox.run_by(self._gang, ray.get_runtime_context().current_actor)

    def after_exception(self, run_context: Any, worker_exceptions: dict[int, Exception]) -> None:
        reasons = "; ".join(f"rank {rank}: {_innermost(error)}" for rank, error in sorted(worker_exceptions.items()))
        self._mailbox.post(GangLost(gang=self._gang, reason=reasons))


def serve(config: dict[str, Any]) -> GangEnded | None:
    """The training function of every gang: opens the program and serves assignments until goodbye.

    Returns:
        Why the gang cannot serve, on the rank that knows it; None after a goodbye, or when its mailbox has died.
    """
    gang, program, mailbox = config["gang"], config["program"], config["mailbox"]
    calm_loaded()
    end_surely()
    context = _worker_context(gang, mailbox)
    labels = label_logs(gang)
    incarnation = context.broadcast(uuid.uuid4().hex)
    try:
        config["reach"].check_here(context.node_ip)
        opening = program.open(context)
    except Exception as error:
        # The other ranks may wait in a collective for this one; the driver ends the gang.
        ended = GangEnded(
            gang=gang,
            error=one_line(error),
            traceback=traceback.format_exc(),
            final=True,
            logs=output.own(context.node_ip),
        )
        mailbox.post(ended)
        return ended
    group = ray.util.get_current_placement_group()
    up = GangUp(
        gang=gang,
        workers=context.world_size,
        incarnation=incarnation,
        placement_group=group.id.hex() if group else "",
        pids=(os.getpid(),),
        nodes=(ray.get_runtime_context().get_node_id(),),
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
        return Served(gang=gang, trial_id=assignment.trial_id, error=one_line(error), away=True)
    except Exception as error:
        refusal = Served(
            gang=gang,
            trial_id=assignment.trial_id,
            error=one_line(error),
            traceback=traceback.format_exc(),
            logs=output.own(context.node_ip),
            diverged=isinstance(error, DivergedError),
            away=isinstance(error, StorageError),
            reports=tuple(reporter.reports),
        )
        if not mailbox.refuse(refusal, context.rank, context.world_size, AGREE_SECONDS):
            # Not the trial's own error: this worker group is broken, and Train has to start another.
            raise
        return None
    return Served(gang=gang, trial_id=assignment.trial_id, segment=segment) if speaks else None


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


class Halts:
    """Asks whether an assignment is to be halted: not in its first moments, seldom later, and never waiting for long.

    So a short rung costs no call, and a driver that cannot be reached holds nothing up.

    Args:
        ask: returns a reference to the answer, in Ray's object store.
    """

    def __init__(self, ask: Callable[[], Any]) -> None:
        self._ask = ask
        self._asked = time.monotonic()
        self._answer: Any = None
        self._halted = False

    def __call__(self) -> bool:
        """Whether it is to be halted, as far as is known."""
        now = time.monotonic()
        if self._halted or now - self._asked < HALT_SECONDS:
            return self._halted
        self._asked = now
        self._answer = self._answer or self._ask()
        if ray.wait([self._answer], timeout=ANSWER_SECONDS)[0]:
            answer, self._answer = self._answer, None
            with contextlib.suppress(RayError):  # Without its driver a gang ends anyway.
                self._halted = bool(ray.get(answer))
        return self._halted


def _given_up(gang: str, mailbox: MailboxHandle) -> bool:
    """Whether what a gang serves is to be halted; true, too, where nobody is there to ask."""
    try:
        return bool(ray.get(mailbox.halted(gang), timeout=ASKED_SECONDS))
    except GetTimeoutError:
        return False
    except RayError:
        return True


def _silent(report: Report) -> None:
    pass


def _worker_context(gang: str, mailbox: MailboxHandle) -> WorkerContext:
    from ray.train import get_context
    from ray.train.collective import broadcast_from_rank_zero

    context = get_context()
    cpus = ray.get_runtime_context().get_assigned_resources().get("CPU", 1)
    return WorkerContext(
        rank=context.get_world_rank(),
        world_size=context.get_world_size(),
        node_ip=ray.util.get_node_ip_address(),
        cpus=max(1, int(cpus)),
        broadcast=broadcast_from_rank_zero,
        storage=PatientStorage(
            lambda reason: mailbox.post(StorageAway(gang=gang, reason=reason)),
            partial(_given_up, gang, mailbox),
        ),
    )


def one_line(error: BaseException) -> str:
    """The first line of an error that says something, without when and where in XGBoost's source it was written.

    XGBoost's messages also carry a stack trace behind it. What is left is the same for every trial with that error.
    """
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return in_words(error, re.sub(r"^\[\d\d:\d\d:\d\d\] \S+:\d+: ", "", line))


def _innermost(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return one_line(error)
