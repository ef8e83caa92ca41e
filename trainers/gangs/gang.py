"""A gang on its driver: one long-lived Ray Train run whose warm workers serve assignments."""

from __future__ import annotations

import contextlib
import os
import threading
import traceback
from collections.abc import Mapping
from pickle import PicklingError
from typing import Any

import ray
import ray.train
from ray.train import ScalingConfig
from ray.util import placement_group_table, remove_placement_group
from ray.util.placement_group import PlacementGroup

from trainers import steady
from trainers.cluster import Reach
from trainers.errors import GangError
from trainers.gangs.controller import TellLosses, innermost
from trainers.gangs.mailbox import MailboxHandle
from trainers.gangs.messages import GangEnded, Goodbye
from trainers.gangs.program import Program, seconds_to_end, sees_peers_gpus
from trainers.gangs.scaling import resources_per_worker
from trainers.gangs.worker import serve
from trainers.process import Scratch, whole

# Ray Train polls its workers this often; it bounds how soon a gang's end or a dead worker is seen. The default of
# 2 s adds 2 to 4 s to each, and polling much faster costs the processor time that training needs.
POLL_SECONDS = "0.5"
SETTLED_SECONDS = 2.0

END_SECONDS = 30.0
"""How long a gang that was told to end may take before it is ended by force, beside what its program takes."""


class Gang:
    """One gang: start, assign, close. What happens to it comes as events from the mailbox.

    A worker that dies takes its peers with it: Ray Train's failure policy starts the worker group anew, and the gang
    says `GangLost`, then `GangUp` with a new incarnation.

    Args:
        name: unique on the cluster.
        program: what its workers run.
        scaling: how many workers, and what each needs.
        mailbox: where its events go.
        reach: what its workers have to see of the driver's machine.
        runtime_env: Ray's environment for its workers.
    """

    def __init__(
        self,
        name: str,
        program: Program,
        scaling: ScalingConfig,
        mailbox: MailboxHandle,
        reach: Reach | None = None,
        runtime_env: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.scaling = scaling
        self.placement_group = ""
        self.held_since: float | None = None
        self._mailbox = mailbox
        self._program = program
        self._reach = reach or Reach()
        self._runtime_env = dict(runtime_env or {})
        self._others: frozenset[str] = frozenset()
        self._closing = threading.Event()
        self._killed = False
        self._placed = ""
        """The placement group that holds its workers, as they say; `placement_group` may be a guess."""
        self._over = False
        self.thread = threading.Thread(target=self._run, name=f"gang-{name}", daemon=True)

    @property
    def end_seconds(self) -> float:
        """How long it may take to end once it was told to: also as long as its program may take."""
        return END_SECONDS + seconds_to_end(self._program)

    @property
    def workers(self) -> int:
        """How many workers it has."""
        return int(self.scaling.num_workers)  # type: ignore[arg-type]  # a range is refused by Trainer

    @property
    def ended(self) -> bool:
        """Whether its Train run is over and everything it held is released."""
        return not self.thread.is_alive()

    def start(self) -> None:
        """Starts the workers in the background; `GangUp` tells when they are ready.

        Raises:
            GangError: the program cannot be pickled.
        """
        self._others = frozenset(placement_group_table())
        try:
            # Train's controller reads all that it hands on, and would import what trains, PyTorch say, with it.
            self._at_workers = ray.put(self._program)
        except (TypeError, AttributeError, PicklingError) as error:
            raise GangError(
                f"what the workers of {self.name} run cannot be pickled: {innermost(error)}; let the training function "
                "make there what it needs, instead of taking it along"
            ) from error
        with whole():
            self.thread.start()

    def observe(self) -> None:
        """Looks, while the gang starts, for the moment at which its workers' resources are held."""
        if self.held_since is not None:
            return
        for group, row in placement_group_table().items():
            if group not in self._others and self._is_mine(group, row):
                self.placement_group, self.held_since = self._placed or group, steady.now()

    def placed(self, group: str) -> None:
        """Its workers say which placement group holds them."""
        self.placement_group = self._placed = group

    def goodbye(self) -> None:
        """Tells the gang to end after what it is serving, now or as soon as it is up; does not wait."""
        self._closing.set()
        self._mailbox.order(self.name, "", Goodbye())

    def kill(self) -> None:
        """Ends Train's controller, up or still starting, and with it the run and its workers; does not wait.

        For a cluster that ends with the job: in others what the gang holds would stay taken until then. A run that is
        not over when Ray ends may turn to Ray once more, which ends this process without a word.
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
        _remove(self.placement_group)

    def release(self) -> None:
        """Gives back what its workers held, where its run is over: Ray keeps it where Train's controller has died.

        That is until the job ends. What `observe` found may be another gang's, whose workers start again meanwhile.
        """
        if self._over and self._placed:
            _remove(self._placed)

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
        try:
            ended = self._until_over()
        except BaseException as error:  # A cluster that is shut down under it raises SystemExit.
            ended = GangEnded(gang=self.name, error=innermost(error), traceback=traceback.format_exc())
        self._over = True
        # After a goodbye nobody listens, and Ray may be shut down: to touch it then would end this process.
        if not self._closing.is_set():
            self._mailbox.post(ended)

    def _until_over(self) -> GangEnded:
        # Imported here: it takes a while, and only a gang that starts needs it.
        from trainers.cluster import GangTrainer, PeersGpus

        os.environ.setdefault("RAY_TRAIN_HEALTH_CHECK_INTERVAL_S", POLL_SECONDS)
        # A gang is started where it fits; if others were quicker, Train gives up after this long, and `RayGangs` looks
        # for room again.
        os.environ.setdefault("RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S", "15")
        # One process fewer to start; nothing here asks it about nodes that are to be taken away.
        os.environ.setdefault("RAY_TRAIN_ENABLE_PREEMPTION_WATCHER", "0")
        if self._closing.is_set():
            return GangEnded(gang=self.name)  # Later it is too late to turn round: `kill` ends what was begun.
        train: Any = ray.train  # Its annotations are those of Train's first version.
        with contextlib.closing(Scratch(self.name)) as scratch:
            trainer = GangTrainer(
                serve,
                train_loop_config={
                    "gang": self.name,
                    "program": self._at_workers,
                    "mailbox": self._mailbox,
                    "reach": self._reach,
                },
                backend_config=PeersGpus() if sees_peers_gpus(self._program) else None,
                scaling_config=self.scaling,
                run_config=train.RunConfig(
                    name=self.name,
                    storage_path=scratch.path,
                    # A start that fails is reported, not repeated for ever; a worker that dies later is replaced.
                    failure_config=train.FailureConfig(max_failures=-1, controller_failure_limit=0),
                    callbacks=[TellLosses(self.name, self._mailbox)],
                    worker_runtime_env=self._runtime_env or None,
                ),
            )
            result: Any = trainer.fit()
            ended: GangEnded = result.return_value or GangEnded(gang=self.name)
            return ended


def _remove(group: str) -> None:
    with contextlib.suppress(Exception):  # It may be gone by now.
        remove_placement_group(PlacementGroup(ray.PlacementGroupID.from_hex(group)))
