"""Processes on terminals of their own, as a user has them, and what they leave behind."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CTRL_C = b"\x03"


@dataclass(slots=True)
class Terminal:
    """A process and the terminal that it runs on.

    Args:
        process: the process.
        end: our end of its terminal, a file descriptor.
        seen: all that was read of what it wrote.
    """

    process: subprocess.Popen[bytes]
    end: int
    seen: str = ""

    def press(self, keys: bytes) -> None:
        """Types; where nobody has the other end open any more, nothing happens."""
        with contextlib.suppress(OSError):
            os.write(self.end, keys)

    def read_until(self, text: str | None, seconds: float) -> bool:
        """Reads until `text` was written behind what was read before, or, for None, until the process has ended.

        Returns:
            Whether the text came; without it the process has ended.
        """
        begin, deadline = len(self.seen), time.monotonic() + seconds
        while text is None or text not in self.seen[begin:]:
            if time.monotonic() > deadline:
                awaited = "its end" if text is None else repr(text)
                raise AssertionError(f"waited {seconds:.0f} s for {awaited} and saw {self.seen[-3000:]!r}")
            if not select.select([self.end], [], [], 0.2)[0]:
                continue
            try:
                self.seen += os.read(self.end, 65536).decode(errors="replace")
            except OSError:  # So Linux says that nobody has the other end open any more.
                return text is None
        return True


@contextlib.contextmanager
def terminal_of(command: list[str], environment: dict[str, str], folder: Path | None = None) -> Iterator[Terminal]:
    """A process with a terminal of its own, 80 columns by 24 lines; it is killed behind the block if it still runs."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    mode = termios.tcgetattr(its)
    mode[3] |= termios.NOFLSH  # Else Ctrl-C throws away what was written and is not read yet.
    termios.tcsetattr(its, termios.TCSANOW, mode)
    # It becomes the leader of a session, and `its` its terminal, so that typing Ctrl-C is a signal to its group.
    login = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    process = subprocess.Popen(
        [sys.executable, "-c", login, *command],
        env=environment,
        cwd=folder,
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
    )
    os.close(its)
    try:
        yield Terminal(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def processes_of(home: Path) -> list[str]:
    """Processes whose environment names this home: a job's own Ray, and its workers."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if int(folder.name) != os.getpid() and str(home).encode() in (folder / "environ").read_bytes():
                command = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if command.strip():
                    found.append(command)
        except OSError:
            continue
    return found


def left_behind(home: Path, scratch: Path, seconds: float) -> list[str]:
    """Return processes and files that a job with this home and temporary folder leaves after so many seconds."""
    deadline = time.monotonic() + seconds
    while (processes := processes_of(home)) and time.monotonic() < deadline:
        time.sleep(0.2)
    return [*processes, *(path.name for path in scratch.glob("warmband-*"))]
