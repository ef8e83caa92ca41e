"""Memory of processes, from Linux's /proc: at one moment, and over time."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psutil


def held(pid: int | str = "self") -> int:
    """Bytes of a process's own: private pages, and its share of those of files that others map too; 0 if it is gone.

    That is its PSS without shared memory, such as Ray's object store.
    """
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    sizes = {name: 1024 * int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in lines[1:])}
    return sizes.get("Pss_Anon", 0) + sizes.get("Pss_File", 0)


def descendants(pid: int) -> list[int]:
    """A process's children, theirs, and so on."""
    try:
        return [child.pid for child in psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What was held at one moment, in bytes: by the driver, by each worker, by the object store, by all together."""

    at: float
    driver: int
    workers: dict[int, int]
    store: int
    together: int


class MemoryWatch:
    """Looks at this process and all that it started, twice a second, from a thread; a context manager.

    Args:
        notes: folder in which each worker has a file of its process id.
    """

    def __init__(self, notes: Path) -> None:
        self.samples: list[Sample] = []
        self._notes = notes
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> MemoryWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(0.5):
            self.samples.append(self._sample())

    def _sample(self) -> Sample:
        pids = [os.getpid(), *descendants(os.getpid())]
        own = {pid: held(pid) for pid in pids}
        names = {int(file.name) for file in self._notes.iterdir()} if self._notes.is_dir() else set[int]()
        store = max((_mapped(pid) for pid in pids), default=0)
        return Sample(
            at=time.time(),
            driver=own[os.getpid()],
            workers={pid: own[pid] for pid in names & own.keys()},
            store=store,
            together=sum(own.values()) + store,
        )


def _mapped(pid: int) -> int:
    """Bytes that Ray's object store has taken up, if this process has its file open."""
    files: dict[int, int] = {}
    try:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            if "/plasma" in os.readlink(link):
                status = link.stat()
                files[status.st_ino] = 512 * status.st_blocks
    except OSError:  # It ended.
        return 0
    return sum(files.values())
