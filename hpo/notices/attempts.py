"""Attempts to send a notice: again after a pause that doubles, until it is taken, refused, or its time is over."""

from __future__ import annotations

import time
from collections.abc import Callable

from trainers.errors import WarmbandError

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 8.0
"""Seconds before the second attempt, doubled each time."""

ATTEMPT_SECONDS = 10.0
"""How long a step of an attempt may take."""


class NotNowError(WarmbandError):
    """An attempt failed, and another may go better."""


class RefusedError(WarmbandError):
    """No attempt will go better."""


def attempted(send: Callable[[float], None], deadline: float) -> str:
    """Sends until that succeeds.

    Args:
        send: sends once; it is given the seconds that each step of it may take.
        deadline: of `time.monotonic()`, after which no attempt begins.

    Returns:
        Why nothing was sent; empty where it was.
    """
    pause, tries = FIRST_PAUSE, 0
    while True:
        tries += 1
        try:
            send(max(0.1, min(ATTEMPT_SECONDS, deadline - time.monotonic())))
            return ""
        except RefusedError as error:
            return str(error)
        except NotNowError as error:
            if time.monotonic() + pause >= deadline:
                return f"{error} (attempt {tries}, the last)"
        time.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)
