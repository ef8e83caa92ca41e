"""Retention of checkpoints: which of them may go."""

from __future__ import annotations

import bisect
from collections import Counter
from dataclasses import dataclass

from hpo.jobs.options import NUM_TO_KEEP
from hpo.ranking import Rank, has_value
from hpo.search import UNTUNED, TrialRun
from trainers.checkpoint import Manifest, trial_of


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
