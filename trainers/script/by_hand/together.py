"""Start of several workers on one machine: their commands run together, and end together; run as a program.

Each argument is the command of a worker, for a shell. `--server` before one says that it serves until the others have
ended. The commands find free ports in the variables `warmband_port_0`, `warmband_port_1` and so on that they name.
If a worker fails, or this program gets SIGINT or SIGTERM, the other workers end too. Nothing of Warmband's is imported.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress

SERVER = "--server"
_PORT = re.compile(r"warmband_port_\d+")
POLL_SECONDS = 0.05
"""How often the workers are looked at."""
GRACE_SECONDS = 30.0
"""How long workers may take to end after SIGTERM."""


def run(words: Sequence[str]) -> int:
    """Run the commands of all workers to their end.

    Args:
        words: the commands, those of servers behind `SERVER`.

    Returns:
        The exit code: 0 where no worker failed, else that of the first one that did, or 128 and a signal's number.
    """
    commands = [word for word in words if word != SERVER]
    serves = [before == SERVER for before, word in zip(("", *words), words, strict=False) if word != SERVER]
    named = sorted({name for command in commands for name in _PORT.findall(command)})
    ports = dict(zip(named, _ports(len(named)), strict=True))
    asked: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # As under nohup.
            signal.signal(number, lambda number, frame: asked.append(number))
    workers = [
        # A group of its own has all that a worker starts. The shell outlives a SIGTERM, so that it is waited for until
        # the program has ended.
        subprocess.Popen(
            ["sh", "-c", f"trap : TERM; {command}"],
            env={**os.environ, **ports},
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        for command in commands
    ]
    awaited = [worker for worker, server in zip(workers, serves, strict=True) if not server]
    try:
        while not asked:
            if code := _failed(workers):
                return code
            if all(worker.returncode == 0 for worker in awaited):
                return 0
            time.sleep(POLL_SECONDS)
        return 128 + asked[0]
    finally:
        _end(workers)


def _ports(count: int) -> list[str]:
    """Return ports of this machine that nothing listens to."""
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [str(each.getsockname()[1]) for each in sockets]


def _failed(workers: Sequence[subprocess.Popen[bytes]]) -> int:
    """Return the exit code of a worker that has failed; 0 where none has."""
    for rank, worker in enumerate(workers):
        if code := worker.poll():
            how = f"signal {-code}" if code < 0 else f"exit code {code}"
            sys.stderr.write(f"worker {rank} ended with {how}; the other workers end, too\n")
            return 128 - code if code < 0 else code
    return 0


def _end(workers: Sequence[subprocess.Popen[bytes]]) -> None:
    """End all that the workers have started."""
    _signal(workers, signal.SIGTERM)
    deadline = time.monotonic() + GRACE_SECONDS
    for worker in workers:
        with suppress(subprocess.TimeoutExpired):
            worker.wait(max(0.0, deadline - time.monotonic()))
    _signal(workers, signal.SIGKILL)
    for worker in workers:
        worker.wait()


def _signal(workers: Sequence[subprocess.Popen[bytes]], number: signal.Signals) -> None:
    for worker in workers:
        with suppress(ProcessLookupError):
            os.killpg(worker.pid, number)


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
