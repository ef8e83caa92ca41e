"""Ctrl-C and SIGTERM at random moments of jobs that train in their process, half of them with an output nobody reads.

    python -m tests.support.signal_rounds --rounds 1000 [--first 0]

Each job is in a process that is forked from this one, which has loaded all modules; one job at a time, as a process of
several threads does not fork well. A job has to end within ten seconds of its signal, as Stopped wherever the signal
came before its end.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from hpo.record.store import Store
from tests.support.boosting import CHANNELS, make

MOST_SECONDS, WHOLE_SECONDS = 10.0, 4.0
"""That a job may take to end behind its signal; and behind which no signal is sent any more."""
PIPE_SIZE = 1031
"""`fcntl.F_SETPIPE_SZ`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A job and its signal.

    Args:
        number: of the round.
        signal: that is sent.
        after: seconds from the job's start to the signal.
        blocked: whether nobody reads the job's output, and the pipe is full.
    """

    number: int
    signal: signal.Signals
    after: float
    blocked: bool

    @classmethod
    def of(cls, number: int) -> Round:
        """The round of a number, always the same."""
        dice = random.Random(number)
        kind = dice.choice([signal.SIGINT, signal.SIGTERM])
        return cls(number=number, signal=kind, after=dice.uniform(0, WHOLE_SECONDS), blocked=dice.random() < 0.5)

    def run(self, folder: Path) -> tuple[str, float]:
        """Run the job, and send the signal.

        Args:
            folder: of the job's files, which is empty.

        Returns:
            What came of it, and the seconds from the signal to the end.
        """
        reader, writer = os.pipe()
        fcntl.fcntl(writer, PIPE_SIZE, 4096)
        url = f"sqlite:///{folder}/record.db"
        ready, begun = os.pipe()
        if not (child := os.fork()):
            _job(writer, begun, url, str(folder / "models"))
        os.read(ready, 1)  # Before that a signal meets Python's own work behind a fork, which drops it.
        os.close(ready)
        os.close(begun)
        drain = threading.Thread(target=_drain, args=[reader], daemon=True)
        if not self.blocked:
            drain.start()
        time.sleep(self.after * 0.7)
        if self.blocked:
            _fill(writer)
        os.close(writer)
        time.sleep(self.after * 0.3)
        with suppress(ProcessLookupError):
            os.kill(child, self.signal)
        began = time.monotonic()
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() - began > 3 * MOST_SECONDS:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                break
            time.sleep(0.02)
        seconds = time.monotonic() - began
        os.close(reader) if self.blocked else drain.join(MOST_SECONDS)
        code = os.waitstatus_to_exitcode(ended[1])
        return self.judged(url, code, seconds), seconds

    def judged(self, url: str, code: int, seconds: float) -> str:
        """Say what came of it; a text that begins with "FAULT" is none of what may."""
        if seconds > MOST_SECONDS:
            return f"FAULT: it took {seconds:.1f} s"
        with Store(url) as store:
            jobs = store.jobs()
        if not jobs:
            return "no job was recorded yet" if code in (130, -2, -15, 143, 1) else f"FAULT: exit code {code}, no job"
        status = jobs[0].status
        if status == "Completed" and code == 0:
            return "it had ended"
        right = status == "Stopped" and code == (130 if self.signal == signal.SIGINT else 143)
        return "Stopped" if right else f"FAULT: {status}, exit code {code}"


def _fill(pipe: int) -> None:
    """Write into a pipe until it takes no more; by an open file of its own, as the job's has to wait."""
    own = os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while True:
            os.write(own, b"x")
    os.close(own)


def _drain(reader: int) -> None:
    with os.fdopen(reader, "rb") as stream:
        while stream.read(65536):
            pass


def _job(output: int, begun: int, url: str, models: str) -> None:
    """The job, in the process of its own."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # A shell's background jobs ignore it.
    os.dup2(output, 1)
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    code = 1
    try:
        os.write(begun, b"x")
        tuner = make(workers=0, max_jobs=5000, console=Console(file=sys.stdout), store=url, storage_path=models)
        tuner.fit(CHANNELS, job_name="signalled")
        code = 0
    except KeyboardInterrupt:
        code = 130
    except SystemExit as error:
        code = int(error.code or 0)
    finally:
        os._exit(code)


def main() -> None:
    """Run the rounds, and exit with 1 where one was not as it has to be."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.signal_rounds", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="number of the first round")
    options = parser.parse_args()
    found: Counter[str] = Counter()
    longest = 0.0

    for number in range(options.first, options.first + options.rounds):
        done = Round.of(number)
        with tempfile.TemporaryDirectory(prefix="signalled-", ignore_cleanup_errors=True) as folder:
            what, seconds = done.run(Path(folder))
        found[what if what.startswith("FAULT") else f"{what}{', output blocked' if done.blocked else ''}"] += 1
        longest = max(longest, seconds)
        if what.startswith("FAULT"):
            sys.stdout.write(f"{done}: {what}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{options.rounds} rounds, the longest ended {longest:.1f} s behind its signal: {dict(found)}\n")
    sys.exit(any(what.startswith("FAULT") for what in found))


if __name__ == "__main__":
    main()
