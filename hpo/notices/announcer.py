"""Announcer of a job: sends the notices that are due in threads, and says in the job's lines what came of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from hpo.notices.attempts import attempted
from hpo.notices.entries import Email, Webhook, entries_from_json
from hpo.notices.mail import mail
from hpo.notices.notice import Budget, Notice, of_budget, of_end
from hpo.notices.webhook import post
from hpo.record import JobRow, LineRow, Store
from hpo.text import first_line
from trainers import steady
from trainers.errors import WarmbandError

if TYPE_CHECKING:
    from hpo.cost import Entry, Limits
    from hpo.search import JobState, TrialRun
    from hpo.strategies import Cut
    from trainers.gangs import Report

DEADLINE = 30.0
"""Seconds after which a notice that was not taken is given up, and a process that has run a job ends without it."""

SENT, UNSENT = "notice-", "no-notice-"
"""How the ids of lines begin that say that a notice was sent, or was not."""


class Announcer:
    """Watches what a running job uses of its limits, as an `Observer`, and announces that and its end.

    Args:
        store: the record.
        name: the job's.
        entries: its notices' entries, by name.
        limits: the job's.
        say: prints a line.
    """

    def __init__(
        self,
        store: Store,
        name: str,
        entries: Mapping[str, Webhook | Email],
        limits: Limits,
        say: Callable[[str], None],
    ) -> None:
        self._store, self._name, self._limits, self._say = store, name, limits, say
        self._entries = entries
        self._of_budget = {name: entry for name, entry in entries.items() if "budget" in entry.events}
        self._begun: set[tuple[str, str]] = set()
        """Entries by name, and the limits of which they were told."""
        self._threads: list[threading.Thread] = []

    def progress(self, state: JobState) -> None:
        """See `Observer.progress`: sends what is due of the budget, once, whatever the run before has sent."""
        if not self._of_budget:
            return
        ledger = state.ledger
        waited = max(0.0, state.seconds - ledger.gang_seconds)
        shares = self._limits.shares(state.seconds, ledger.total + ledger.open, waited)
        for name, entry in self._of_budget.items():
            for limit, (share, most) in shares.items():
                if share >= entry.budget_share and (name, limit) not in self._begun:
                    self._begun.add((name, limit))
                    budget = Budget(limit=limit, share=share, most=most)
                    due = partial(of_budget, name=name, entry=entry, budget=budget, at=steady.now())
                    send = partial(_announce, self._store, self._name, due, self._say)
                    self._threads.append(_started(send, daemon=True))

    def close(self) -> None:
        """Sends what is due of the job's end, and waits until that and what was begun is sent or given up."""
        if self._entries:
            announce(self._store, self._name, self._say)
        deadline = time.monotonic() + DEADLINE
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def trial(self, run: TrialRun) -> None:
        """Nothing: no notice is of a trial."""

    def reports(self, run: TrialRun, reports: Sequence[Report]) -> None:
        """Nothing."""

    def rung(self, cut: Cut) -> None:
        """Nothing."""

    def ledger(self, entries: Sequence[Entry]) -> None:
        """Nothing: `progress` looks at the sum."""


def announce(store: Store, name: str, say: Callable[[str], None] = lambda text: None) -> None:
    """Sends the notices of a job's end that no process has sent yet, within `DEADLINE`; a failure is said, not raised.

    Args:
        store: the record.
        name: the job's.
        say: prints a line.
    """
    _announce(store, name, lambda job: of_end(job, entries_from_json(job.spec.get("notices"))), say)


def announce_apart(store: Store, name: str) -> None:
    """Announces a job's end in a thread, which this process ends not without; nobody waits for it."""
    with suppress(WarmbandError):
        if store.job(name).spec.get("notices"):
            _started(partial(announce, store, name), daemon=False)


def _announce(store: Store, name: str, due: Callable[[JobRow], Iterable[Notice]], say: Callable[[str], None]) -> None:
    try:
        if notices := list(due(store.job(name))):
            _send(store, name, notices, say)
    except Exception as error:  # What goes wrong with a notice is no reason to end a job otherwise.
        say(f"warning: notices of {name}: {type(error).__name__}: {first_line(str(error))}")


def _send(store: Store, name: str, due: Sequence[Notice], say: Callable[[str], None]) -> None:
    """Sends notices side by side: one that is not answered holds no other up."""
    sent = {line.id for line in store.lines(name)}
    sending = [(notice, _Sending(notice)) for notice in due if SENT + notice.id not in sent]
    for notice, each in sending:
        wrong = each.result()
        what = f"notice of {notice.event} "
        text = what + (f"not sent to {notice.target}: {wrong}" if wrong else f"sent to {notice.target}")
        say(f"warning: {text}" if wrong else text)
        store.line(LineRow(job=name, text=text, at=steady.now(), id=(UNSENT if wrong else SENT) + notice.id))


class _Sending:
    """A notice on its way, in a thread of its own: a server that sends its answer letter by letter has no end."""

    def __init__(self, notice: Notice) -> None:
        self._notice = notice
        self._wrong = f"no answer within {DEADLINE:g} s"
        self._deadline = time.monotonic() + DEADLINE
        self._thread = _started(self._run, daemon=True)

    def _run(self) -> None:
        try:
            self._wrong = attempted(self._once, self._deadline)
        except Exception as error:  # Whatever a server's answer does to a client of the standard library.
            self._wrong = type(error).__name__

    def _once(self, seconds: float) -> None:
        entry = self._notice.entry
        if isinstance(entry, Webhook):
            post(entry, self._notice, seconds)
        else:
            mail(entry, self._notice, seconds)

    def result(self) -> str:
        """Why it was not sent; empty where it was."""
        self._thread.join(max(0.0, self._deadline - time.monotonic()))
        return self._wrong


def _started(run: Callable[[], None], *, daemon: bool) -> threading.Thread:
    thread = threading.Thread(target=run, name="notices", daemon=daemon)
    thread.start()
    return thread
