"""Halting of an assignment: a question of its workers to the mailbox, with a short wait for the answer."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError

from trainers.gangs.mailbox import MailboxHandle

HALT_SECONDS = 0.5
"""How often, at most, a worker asks whether to halt: it bounds what a long rung pays for that."""

ANSWER_SECONDS = 0.05
"""How long it waits for the answer; one that comes later is looked at when it would ask again."""

ASKED_SECONDS = 5.0
"""How long a worker that waits for storage waits for the answer whether it is to go on waiting."""


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


def given_up(gang: str, mailbox: MailboxHandle) -> bool:
    """Whether what a gang serves is to be halted; true, too, where nobody is there to ask."""
    try:
        return bool(ray.get(mailbox.halted(gang), timeout=ASKED_SECONDS))
    except GetTimeoutError:
        return False
    except RayError:
        return True
