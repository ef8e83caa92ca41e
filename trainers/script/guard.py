"""Guard: a process that ends a worker's programs where the worker itself is killed; run as a program, without imports.

It reads "+ TOKEN", "+ TOKEN GROUP" and "- TOKEN" lines from its standard input, and its end means that the worker is
gone; "end" that nothing is to be watched any more. What a program starts has the program's token in its environment,
also what leaves its process group and outlives its parent.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress

PATH = __file__
"""Of this program."""
TOKEN = "WARMBAND_PROGRAM"
"""The environment variable by which all processes of a program are known."""
END = "end"
"""The line by which a worker dismisses it."""
KILL_SECONDS = 10.0
"""How long it kills what is there: a process may start another one meanwhile."""
LOOKS = 2
"""How often nothing has to be found: a process that is about to become another program has no environment."""


def with_token(token: str) -> list[int]:
    """The processes of this user with a token in their environment; none where there is no /proc."""
    found = []
    mark = f"{TOKEN}={token}".encode()
    with suppress(OSError):
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            with suppress(OSError), open(f"/proc/{name}/environ", "rb") as environment:
                if mark in environment.read().split(b"\0"):
                    found.append(int(name))
    return found


def signal_whole(group: int | None, token: str, number: int) -> bool:
    """Sends a signal to a program's process group, and to all others with its token; returns whether one was there."""
    there = False
    with suppress(ProcessLookupError, PermissionError):
        if group is not None:
            os.killpg(group, number)
            there = _lives(group)
    for process in with_token(token):
        with suppress(ProcessLookupError, PermissionError):
            os.kill(process, number)
            there = True
    return there


def kill_whole(group: int | None, token: str, seconds: float) -> None:
    """Kills all processes of a program, and what they start meanwhile, until none is there or `seconds` are over."""
    deadline, found = time.monotonic() + seconds, 0
    while found < LOOKS and time.monotonic() < deadline:
        found = 0 if signal_whole(group, token, signal.SIGKILL) else found + 1
        time.sleep(0.01 if found else 0.05)


def _lives(group: int) -> bool:
    """Whether a process group has more than processes that are over, which nobody asks for their exit codes."""
    if not os.path.isdir("/proc/self"):
        return True
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(OSError), open(f"/proc/{name}/stat", "rb") as facts:
            state, _, of = facts.read().rpartition(b")")[2].split()[:3]
            if int(of) == group and state not in b"ZX":
                return True
    return False


def main() -> None:
    """Waits for the worker's end, as a process that is no child of it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # It ends when the worker is gone, and not before.
    if os.fork():
        os._exit(0)
    programs: dict[str, int | None] = {}
    for line in sys.stdin:
        match line.split():
            case ["+", token]:
                programs[token] = None
            case ["+", token, group]:
                programs[token] = int(group)
            case ["-", token]:
                programs.pop(token, None)
            case [word] if word == END:
                return
    for token, group in programs.items():
        kill_whole(group, token, KILL_SECONDS)


if __name__ == "__main__":
    main()
