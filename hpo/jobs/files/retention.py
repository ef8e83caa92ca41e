"""Retention of checkpoints, and the thread that removes the others."""

from __future__ import annotations

import bisect
import logging
import math
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from hpo.jobs.options import NUM_TO_KEEP, check_option
from hpo.ranking import Rank, has_value, ranks
from hpo.search import PROBE, UNTUNED, Search, TrialRun, rank_of, standing_of
from trainers import storage
from trainers.checkpoint import Manifest, remove, trial_of
from trainers.errors import LeaseError, WarmbandError

BATCH_SECONDS = 1.0
"""How long removals are gathered, so that the store is waited for once a batch and not once a file."""

CLOSE_SECONDS = 60.0
"""How long the end of a job waits for what is still to be removed."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A trial's last checkpoint."""

    run: TrialRun
    uri: str
    manifest: Manifest

    @property
    def is_borrowed(self) -> bool:
        """Whether it is another trial's, which this one goes on from."""
        return trial_of(self.uri) != self.run.id


class Retention:
    """Which checkpoints may go: pure, and holds those that stay, not those that were.

    A trial that has not ended keeps its latest, which it goes on from. Of those that ended, the best `num_to_keep`
    keep theirs, and the un-tuned run always does. A trial that failed, or whose value is not finite, is none of the
    best: its traceback and its logs stay, and a model from before its failure tells little more.

    A fork goes on from another trial's checkpoint until it has one of its own. That one stays so long, whatever becomes
    of the other trial. One that a trial lends, at a unit where others may part from it, stays as long as it lends it.

    Args:
        num_to_keep: how many; None keeps the last one of every trial, failed ones too.
    """

    def __init__(self, num_to_keep: int | None) -> None:
        self._num_to_keep = num_to_keep
        self._live: dict[str, Checkpoint] = {}
        self._best: list[tuple[Rank, Checkpoint]] = []
        self._untuned: list[Checkpoint] = []
        self._users: Counter[str] = Counter()
        """By checkpoint, the trials whose last it is."""
        self._lent: Counter[str] = Counter()
        """By trial, the others that go on from a checkpoint in its folder, or may."""
        self._lending: dict[str, frozenset[str]] = {}
        """By trial, the checkpoints that it lends."""
        self._over: set[str] = set()
        self._written_bytes = self._uncounted = self._uncounted_bytes = 0

    def served(self, run: TrialRun) -> Checkpoint | None:
        """A trial may have a new checkpoint; returns the one that it then takes the place of, if nobody needs that."""
        before = self._live.get(run.id)
        if run.id in self._over or not run.checkpoint or (before is not None and before.uri == run.checkpoint):
            return None
        self._live[run.id] = last = Checkpoint(run=run, uri=run.checkpoint, manifest=run.manifest)
        self._users[last.uri] += 1
        if last.is_borrowed:
            self._lent[trial_of(last.uri)] += 1
        else:
            self._written_bytes += run.manifest.size
        return before if before is not None and self._left(before) else None

    def ended(self, run: TrialRun, rank: Rank) -> Checkpoint | None:
        """A trial has ended, once; returns the checkpoint that is not one of the best, its own or another's.

        Whether forks need it is for `is_needed` and `lends` to say.

        Args:
            run: the trial.
            rank: where it stands among the others.
        """
        last = self._live.pop(run.id, None)
        self._over.add(run.id)
        if last is None:
            return None
        if run.id == UNTUNED:
            self._untuned.append(last)
        elif self._num_to_keep is None:
            self._uncounted += 1
            self._uncounted_bytes += last.manifest.size
        else:
            gone: Checkpoint | None = last
            if has_value(rank):
                bisect.insort(self._best, (rank, last), key=lambda entry: entry[0])
                gone = self._best.pop()[1] if len(self._best) > self._num_to_keep else None
            if gone is not None:
                self._left(gone)
            return gone
        return None

    def lent(self, run: TrialRun) -> list[str]:
        """A trial may lend others than before; returns the checkpoints of those before that nobody needs now."""
        before = self._lending.get(run.id, frozenset())
        now = self._lending[run.id] = frozenset(each["checkpoint"] for each in run.lends.values())
        for uri in now - before:
            self._users[uri] += 1
            self._lent[trial_of(uri)] += 1
        for uri in before - now:
            _one_less(self._users, uri)
            _one_less(self._lent, trial_of(uri))
        return [uri for uri in sorted(before - now) if not self.is_needed(uri)]

    @property
    def lending(self) -> list[str]:
        """All checkpoints that trials lend."""
        return [uri for uris in self._lending.values() for uri in uris]

    def is_needed(self, checkpoint: str) -> bool:
        """Whether it is the last of any trial, or lent."""
        return checkpoint in self._users

    def lends(self, trial_id: str) -> bool:
        """Whether others go on from a checkpoint in a trial's folder, or may."""
        return trial_id in self._lent

    def _left(self, checkpoint: Checkpoint) -> bool:
        """A trial's last checkpoint is that no more; returns whether it was nobody else's."""
        _one_less(self._users, checkpoint.uri)
        if checkpoint.is_borrowed:
            _one_less(self._lent, trial_of(checkpoint.uri))
        return not self.is_needed(checkpoint.uri)

    @property
    def listed(self) -> list[Checkpoint]:
        """Those that stay; with `num_to_keep` None, those of ended trials are not among them, but in `totals`."""
        return [*self._live.values(), *self._untuned, *(checkpoint for _, checkpoint in self._best)]

    @property
    def totals(self) -> dict[str, int]:
        """For the summary: how many checkpoints stay, their bytes, and all bytes that were ever written."""
        return {
            "kept": len(self.listed) + self._uncounted,
            "kept_bytes": sum(checkpoint.manifest.size for checkpoint in self.listed) + self._uncounted_bytes,
            "written_bytes": self._written_bytes,
        }


class Checkpoints:
    """Follows a job's trials and removes what `Retention` lets go, in a thread of its own.

    Nothing is removed before the store has durably recorded what took its place, and nothing waits for a removal. What
    cannot be removed is a warning, once, and stays.

    Args:
        search: whose trials; their checkpoints are in its `storage_path`, one folder a trial.
        flush: returns when all that was recorded so far is in the store, and raises WarmbandError if it is not in time,
            LeaseError if another process drives the job.
        num_to_keep: as `Retention` takes it.

    Raises:
        ConfigurationError: `num_to_keep` is neither None nor a whole number of 1 or more.
    """

    def __init__(self, search: Search, flush: Callable[[], None], *, num_to_keep: int | None = NUM_TO_KEEP) -> None:
        check_option("num_to_keep", num_to_keep)
        self._search = search
        self._num_to_keep = num_to_keep
        self._flush = flush
        self._retention = Retention(num_to_keep)
        self._together: dict[int, dict[int, TrialRun]] = {}
        """Trials that ended before others of their configuration, by its number."""
        self._decided: list[tuple[Callable[[str], None], str]] = []
        self._queue: list[tuple[Callable[[str], None], str]] = []
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._deadline = math.inf
        self._sweeps = False
        self._warned = False
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
        self._decided += ((remove, uri) for uri in self._retention.lent(run))
        older = self._retention.served(run)
        if older and older.uri != run.back.get("checkpoint"):
            self._decided.append((remove, older.uri))
        if not run.trial.is_finished() or run.cut or not run.judged:
            return []
        return [each for ended, rank in self._ranked(run) if (each := self._gone(ended, rank)) is not None]

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
            self._decided.append((storage.delete_folder, self._folder(gone.run.id)))

    def recorded(self) -> None:
        """Lets the chosen files go once the store has all that was recorded before this call."""
        if self._decided:
            with self._changed:
                self._queue += self._decided
                self._changed.notify_all()
            self._decided = []

    def close(self, seconds: float = CLOSE_SECONDS, *, sweep: bool) -> dict[str, int]:
        """Removes what is left to remove; call it when no gang is up. A second call does nothing.

        Trials that have not ended keep their latest, so that a job that broke off could go on.

        Args:
            seconds: how long it may take.
            sweep: also remove what gangs that were lost wrote late, by what is kept: only for a run that knows of every
                trial that the record has.

        Returns:
            `Retention.totals`.
        """
        if self._closing.is_set():
            return self._retention.totals
        with self._changed:  # What was decided and not recorded, in a second Ctrl-C, stays: the record names it.
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
        return self._retention.totals

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
                    self._changed.wait_for(lambda: self._queue or self._closing.is_set())
            closing = self._closing.wait(BATCH_SECONDS)
            with self._changed:
                waiting, self._queue = waiting + self._queue, []
            if not waiting or self._remove(waiting):
                waiting = []
            if closing and time.monotonic() > self._deadline:
                return
            if closing and not waiting:
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
        for act, uri in batch:
            if time.monotonic() > self._deadline:
                return True
            self._attempt(act, uri)
        return True

    def _sweep(self) -> None:
        """Leaves in the job's folder what is kept and nothing else; where all is kept, there is nothing to do."""
        if self._num_to_keep is None:
            return
        kept: dict[str, set[str]] = defaultdict(set)
        for each in self._retention.listed:
            kept[trial_of(each.uri)] |= {each.uri, each.run.back.get("checkpoint", "")}
        for uri in self._retention.lending:
            kept[trial_of(uri)].add(uri)
        mine = [name for name in self._names(self._search.storage_path) if self._is_mine(name)]
        for name in mine:
            if time.monotonic() > self._deadline:
                return
            if name not in kept:
                self._attempt(storage.delete_folder, self._folder(name))
                continue
            for file in self._names(self._folder(name)):
                uri = storage.join(self._folder(name), file)
                if uri not in kept[name]:
                    self._attempt(remove, uri)
        if mine and not self._names(self._search.storage_path):
            self._attempt(storage.delete_folder, self._search.storage_path)

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

    def _is_mine(self, name: str) -> bool:
        """Whether a folder is a trial's, and not something that a user keeps beside them."""
        number = name.removeprefix(f"{self._search.name}-")
        return name in (UNTUNED, PROBE) or (number != name and number.isdigit())


def _one_less(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]


def dropped(trial_id: str) -> str:
    """Why a trial that trained has no model any more, and what to do."""
    return (
        f"the checkpoint of trial {trial_id!r} was dropped, since others did better; a job keeps those of its best "
        f"num_to_keep trials, {NUM_TO_KEEP} if nothing is said, and of all with num_to_keep=None. Train it again: "
        "fit() of this estimator"
    )
