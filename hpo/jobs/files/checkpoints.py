"""Checkpoints of a running job: a thread archives models of trials that have ended, and removes what may go."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial

from hpo.jobs.files.archives import Archives
from hpo.jobs.files.folder import is_trial
from hpo.jobs.files.retention import Checkpoint, Retention
from hpo.jobs.options import NUM_TO_KEEP, check_option
from hpo.ranking import Rank, ranks
from hpo.search import Search, TrialRun, rank_of, standing_of
from trainers import patient_storage, storage
from trainers.checkpoint import remove, remove_trial, trial_of
from trainers.errors import LeaseError, StorageError, WarmbandError

BATCH_SECONDS = 1.0
"""How long removals are gathered, so that the store is waited for once a batch and not once a file."""

CLOSE_SECONDS = 60.0
"""How long the end of a job waits for what is still to be removed."""

HURRIED_SECONDS = 2.0
"""How long it waits where a signal asked the job to stop; what stays goes when the job is resumed or deleted."""

logger = logging.getLogger(__name__)


class Checkpoints:
    """Follows a job's trials and removes what `Retention` lets go, in a thread of its own.

    Nothing is removed before the store has durably recorded what took its place, and the models of all trials that have
    ended are in their archives, where the job has some. Nothing waits for a removal. What cannot be removed is a
    warning, once, and stays.

    Args:
        search: whose trials; their checkpoints are in its `storage_path`, one folder a trial.
        flush: returns when all that was recorded so far is in the store, and raises WarmbandError if it is not in time,
            LeaseError if another process drives the job.
        num_to_keep: as `Retention` takes it.
        archives: of the models; None makes none.

    Raises:
        ConfigurationError: `num_to_keep` is neither None nor a whole number of 1 or more.
    """

    def __init__(
        self,
        search: Search,
        flush: Callable[[], None],
        *,
        num_to_keep: int | None = NUM_TO_KEEP,
        archives: Archives | None = None,
    ) -> None:
        check_option("num_to_keep", num_to_keep)
        self._search = search
        self._num_to_keep = num_to_keep
        self._flush = flush
        self._archives = archives
        self._archived_at: dict[str, int] = {}
        """Units of the model of each trial that is archived, or is to be."""
        self._models: list[TrialRun] = []
        self._unarchived: deque[TrialRun] = deque()
        self._retention = Retention(num_to_keep)
        self._together: dict[int, dict[int, TrialRun]] = {}
        """Trials that ended before others of their configuration, by its number."""
        self._decided: list[tuple[Callable[[str], None], str]] = []
        self._queue: list[tuple[Callable[[str], None], str]] = []
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._deadline = math.inf
        self._sweeps = False
        self._warned = self._told_away = False
        self._thread = threading.Thread(target=self._run_while_held, name=f"checkpoints of {search.name}", daemon=True)
        self._thread.start()

    def trial(self, run: TrialRun) -> list[TrialRun]:
        """Takes in a trial's new state: call it at each change, and once when the trial has ended.

        One that a stop cut keeps what it goes on from, if the job is resumed. One that a completion criterion has still
        to look at, too: whether it counts is not known.

        Returns:
            Those whose checkpoint goes, `run` or one that it displaced, their `checkpoint` set to None: to be recorded
            before `recorded` is called.
        """
        if self._archives and run.trial.is_finished():
            self._archive(run)
        self._decided += ((remove, uri) for uri in self._retention.lent(run))
        older = self._retention.served(run)
        if older and older.uri != run.back.get("checkpoint"):
            self._decided.append((remove, older.uri))
        if not run.trial.is_finished() or run.cut or not run.judged:
            return []
        return [each for ended, rank in self._ranked(run) if (each := self._gone(ended, rank)) is not None]

    def _archive(self, run: TrialRun) -> None:
        """Decides that the model of a trial which has ended is archived, as it is now."""
        lost = run.failure or run.diverged
        if not lost and run.resource and self._archived_at.get(run.id) != run.resource:
            self._archived_at[run.id] = run.resource
            self._models.append(replace(run))

    def _ranked(self, run: TrialRun) -> Iterator[tuple[TrialRun, Rank]]:
        """A trial that has ended, and where it stands; with others of its configuration, once all of them have."""
        ranking, repeats = self._search.ranking, self._search.repeats
        if not run.tuned or repeats == 1:
            yield run, rank_of(ranking, run)
            return
        together = self._together.setdefault(run.number // repeats, {})
        together[run.number] = run
        if len(together) == repeats:
            del self._together[run.number // repeats]
            found = ranks(ranking, (standing_of(ranking, each) for each in together.values()), repeats)
            yield from ((together[number], rank) for number, rank in sorted(found.items()))

    def _gone(self, run: TrialRun, rank: Rank) -> TrialRun | None:
        """Lets the checkpoint go that a trial which has ended leaves without a place; the trial that had it."""
        gone = self._retention.ended(run, rank)
        if gone is None:
            return None
        self._goes(gone)
        gone.run.checkpoint = None
        return gone.run

    def _goes(self, gone: Checkpoint) -> None:
        """Decides what is removed of a trial that is not kept: its folder, but for what forks go on from there."""
        needed, lends = self._retention.is_needed(gone.uri), self._retention.lends(gone.run.id)
        if not needed and (gone.manifest.is_folder or lends or gone.is_borrowed):
            # A folder's manifest first: what is left where this dies on the way does not look whole.
            self._decided.append((remove, gone.uri))
        if not lends:
            self._decided.append((remove_trial, self._folder(gone.run.id)))

    def recorded(self) -> None:
        """Lets the chosen files go once the store has all that was recorded before this call."""
        if self._decided or self._models:
            with self._changed:
                self._queue += self._decided
                self._unarchived += self._models
                self._changed.notify_all()
            self._decided, self._models = [], []

    def close(self, seconds: float = CLOSE_SECONDS, *, sweep: bool) -> dict[str, int]:
        """Removes what is left to remove; call it when no gang is up. A second call does nothing.

        Trials that have not ended keep their latest, so that a job that broke off could go on.

        Args:
            seconds: how long it may take; longer, where all that is there was decided and models are to be archived.
            sweep: also remove what gangs that were lost wrote late, by what is kept: only for a run that knows of every
                trial that the record has.

        Returns:
            `Retention.totals`.
        """
        if self._closing.is_set():
            return self._retention.totals
        with self._changed:  # What was decided and not recorded, in a second Ctrl-C, stays: the record names it.
            seconds = max(seconds, patient_storage.GIVE_UP_SECONDS) if sweep and self._unarchived else seconds
            self._deadline = time.monotonic() + seconds
            self._sweeps = sweep
            self._closing.set()
            self._changed.notify_all()
        self._thread.join(seconds)
        if self._thread.is_alive():
            logger.warning(
                "checkpoints of %s that are not kept are still being removed after %g s; what is left of them in %s "
                "may be removed by hand",
                self._search.name,
                seconds,
                storage.shown(self._search.storage_path),
            )
        if self._unarchived:
            logger.warning("models of %s are not archived: %s", self._search.name, self._names_of_unarchived())
        return self._retention.totals

    def _names_of_unarchived(self) -> str:
        return ", ".join(run.id for run in list(self._unarchived)[:5])

    def leave(self) -> None:
        """Removes nothing more: the job is another process's now."""
        with self._changed:
            self._queue, self._deadline = [], -math.inf
            self._closing.set()
            self._changed.notify_all()

    # ---- the thread

    def _run_while_held(self) -> None:
        with suppress(LeaseError):  # Another process drives the job: what is there now is not for this one to remove.
            self._run()

    def _run(self) -> None:
        waiting: list[tuple[Callable[[str], None], str]] = []
        while True:
            with self._changed:
                if not waiting:
                    self._changed.wait_for(lambda: self._queue or self._unarchived or self._closing.is_set())
            closing = self._closing.wait(BATCH_SECONDS)
            with self._changed:
                waiting, self._queue = waiting + self._queue, []
            if not (waiting or self._unarchived) or self._remove(waiting):
                waiting = []
            if closing and time.monotonic() > self._deadline:
                return
            if closing and not (waiting or self._unarchived):
                if self._sweeps and self._remove([]):
                    self._sweep()
                return

    def _remove(self, batch: list[tuple[Callable[[str], None], str]]) -> bool:
        """Removes files and folders once the store has what took their place; returns whether it has."""
        try:
            self._flush()
        except LeaseError:
            raise
        except WarmbandError:
            return False  # The store's writer has said so; the files wait with the rows.
        if not self._all_archived():
            return False
        for act, uri in batch:
            if time.monotonic() > self._deadline:
                return True
            self._attempt(act, uri)
        return True

    def _all_archived(self) -> bool:
        """Archives the models of trials that have ended; returns whether all are, or cannot be."""
        while self._archives and self._unarchived and time.monotonic() <= self._deadline:
            try:
                self._archives.write(self._unarchived[0])
            except StorageError as error:  # It may be there a moment later, and what they are made of stays so long.
                if not self._told_away:
                    logger.warning("models of %s cannot be archived now: %s", self._search.name, error)
                self._told_away = True
                return False
            except Exception as error:  # The job is what matters.
                logger.warning("the model of %s cannot be archived: %s", self._unarchived[0].id, error)
            self._told_away = False
            self._unarchived.popleft()
        return not self._unarchived

    def _sweep(self) -> None:
        """Leaves in the job's folder what is kept and nothing else; where all is kept, there is nothing to do."""
        if self._num_to_keep is None:
            return
        kept: dict[str, set[str]] = defaultdict(set)
        for each in self._retention.listed:
            kept[trial_of(each.uri)] |= {each.uri, each.run.back.get("checkpoint", "")}
        for uri in self._retention.lending:
            kept[trial_of(uri)].add(uri)
        for name in self._names(self._search.storage_path):
            if time.monotonic() > self._deadline:
                return
            if is_trial(self._search.name, name):
                self._attempt(partial(remove_trial, kept=kept[name]), self._folder(name))

    def _names(self, folder: str) -> list[str]:
        found: list[str] = []
        self._attempt(lambda uri: found.extend(storage.names(uri)), folder)
        return found

    def _attempt(self, act: Callable[[str], None], uri: str) -> None:
        try:
            act(uri)
        except Exception as error:  # The job is what matters; a file too many is not.
            if not self._warned:
                logger.warning("checkpoints of %s that are not kept stay: %s", self._search.name, error)
            self._warned = True

    def _folder(self, trial_id: str) -> str:
        return storage.join(self._search.storage_path, trial_id)
