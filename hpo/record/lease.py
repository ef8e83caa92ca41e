"""The lease of a job: held by one driver, renewed while that lives."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hpo.record.tables import LOST_AFTER, JobRow
from trainers.errors import LeaseError

_TICKS = os.sysconf("SC_CLK_TCK")


def this_process() -> dict[str, Any]:
    """Where this process runs, for a job's `driver`.

    Returns:
        "host" and "ip"; "pid" and "started", in seconds since the machine's start, which tell it from a later process
        of that number; and "machine", which says among whose processes the number counts.
    """
    pid = os.getpid()
    return {
        "host": socket.gethostname(),
        "ip": _address(),
        "pid": pid,
        "started": _started(pid),
        "machine": _machine(),
    }


def is_dead(driver: Mapping[str, Any]) -> bool:
    """Whether a driver was a process of this very machine and is gone; False where that cannot be told from here."""
    machine, started = driver.get("machine"), driver.get("started")
    if not machine or started is None or machine != _machine():
        return False
    return _started(int(driver["pid"])) != float(started)


def is_held(job: JobRow) -> bool:
    """Whether a process drove a job when its row was read, as far as can be told from here."""
    return bool(job.lease) and job.silent <= LOST_AFTER and not is_dead(job.driver)


def refusal(job: JobRow, what: str) -> LeaseError:
    """The error of whoever wants to do something, `what`, that the holder of a job's lease alone may do."""
    silent = max(0.0, job.silent)
    return LeaseError(
        f"job {job.name!r} cannot be {what}: {holder_of(job.driver)} drives it, last heard of {silent:.0f} s ago; wait "
        f"until it ends, or run `hpo stop {job.name}`. One that died on another machine holds it no longer after "
        f"{LOST_AFTER:g} s without a word"
    )


def left_behind(job: JobRow) -> str:
    """The message about the process that a job is taken over from, by the row as it was before.

    Returns:
        Empty where that process gave its lease back, or is known to be dead.
    """
    if not job.lease or is_dead(job.driver):
        return ""
    return (
        f"taken over from {holder_of(job.driver)}, last heard of {max(0.0, job.silent):.0f} s ago. If that only stands "
        "still, its gangs hold their CPUs and GPUs until it is gone, and there may be no room for gangs of this one: "
        f"end it there, with `kill -KILL {job.driver.get('pid', 'PID')}`"
    )


def holder_of(driver: Mapping[str, Any]) -> str:
    """A driver in words."""
    host, ip = driver.get("host", "an unknown host"), driver.get("ip")
    return f"process {driver.get('pid', '?')} on {host}" + (f" ({ip})" if ip else "")


def _started(pid: int) -> float | None:
    """When a process was started, in seconds since the machine was; None where there is none, or its body only.

    The kernel's own count: psutil adds the time of the machine's start to it, which moves with the clock.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    state, *values = text[text.rindex(")") + 2 :].split()  # What is before may hold blanks.
    return None if state in "ZX" else int(values[18]) / _TICKS


def _machine() -> str:
    """This start of this machine, and the namespace that its process numbers are of; empty where nothing tells."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _address() -> str:
    """The address that others see this machine at; nothing is sent to learn it."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # An address that is for documentation alone.
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])
