"""`Gangs`, the one interface between deciding and executing: something that serves assignments."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from trainers.gangs.messages import Assignment, Event


class Gangs(Protocol):
    """Executor of assignments: workers on Ray, this very process, or a simulation with a clock of its own."""

    @property
    def starting(self) -> int:
        """Gangs that are on their way: starting, or coming back after they lost their workers."""

    def held_since(self, gang: str) -> float:
        """When the gang's resources were first held, on the controller's clock."""

    def want(self, sizes: Mapping[int, int], seconds_left: float | None) -> Collection[str]:
        """Says how many gangs of each size the work could keep busy, and how much work is left.

        Args:
            sizes: gangs by the number of their workers, the most urgent size first.
            seconds_left: gang-seconds of work left; None before anything was measured.

        Returns:
            Idle gangs that were given back for another size, and are there no more.

        Raises:
            DataError: a channel cannot be read by so many workers.
            ResourcesError: not even one gang fits.
            GangError: gangs cannot start.
        """

    def give_back(self) -> Collection[str]:
        """Ends idle gangs that the work has no use for any more, or that other jobs on the cluster have a right to.

        Returns:
            Those, which are there no more.
        """

    def assign(self, gang: str, assignment: Assignment) -> None:
        """Hands an assignment to a gang that is up and free."""

    def halt(self, gang: str) -> None:
        """Ends what a gang serves at its next report with a checkpoint, on all its workers alike; does not wait.

        `Served` then comes with a segment whose last report is before the assignment's `stop`, or with the whole of it
        where that was nearly done. A gang that serves nothing goes on as it was. It may be called from a signal handler
        and from any thread.
        """

    def events(self, timeout: float) -> Sequence[Event]:
        """The events since the last call; waits up to `timeout` seconds for one.

        Raises:
            GangError: gangs cannot serve.
        """

    def recycle(self, gang: str, reason: str) -> None:
        """Ends a gang that does not answer."""

    def close(self, *, now: bool = False) -> None:
        """Ends every gang and releases all they held; a second call does nothing.

        Args:
            now: wait for nothing that a gang is serving.
        """
