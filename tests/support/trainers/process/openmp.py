"""Scripts about OpenMP's threads, each in its own process."""

from __future__ import annotations

import json
import os
import textwrap
from typing import Any

from tests.support.processes import printed
from trainers.process.openmp import POLICY, VARIABLE

SPUN = """
    import ctypes, json, os, time
    from pathlib import Path

    TASKS = Path("/proc/self/task")

    def spun(path):
        '''How many processor seconds a thread takes for one wait, from work to sleep, the median of 9.'''
        runtime, free = ctypes.CDLL(path), ctypes.CDLL(None).free
        before = set(os.listdir(TASKS))
        runtime.GOMP_parallel(free, None, 2, 0)
        [thread] = set(os.listdir(TASKS)) - before
        taken = []
        for _ in range(9):
            used = asleep(TASKS / thread)
            runtime.GOMP_parallel(free, None, 2, 0)
            taken.append(asleep(TASKS / thread) - used)
        return sorted(taken)[4]

    def asleep(task):
        '''Waits until it sleeps; the processor seconds that it has used.'''
        deadline = time.monotonic() + 60
        # Twice, a little apart: until it has begun to work it sleeps as well.
        while [state(task), time.sleep(0.01), state(task)] != ["S", None, "S"]:
            assert time.monotonic() < deadline, "waited 60 s for an OpenMP thread to sleep"
        return int((task / "schedstat").read_text().split()[0]) / 1e9

    def state(task):
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
"""
"""Needs a machine with two CPUs: with fewer, libgomp spins less by itself."""


def fresh(script: str, timeout: float = 300, **environment: str) -> Any:
    """Run a script in its own process, without Warmband's or the user's setting; return its printed JSON."""
    kept = {name: value for name, value in os.environ.items() if name not in (VARIABLE, POLICY)}
    code = textwrap.dedent(SPUN) + textwrap.dedent(script)
    return json.loads(printed(code, environment={**kept, **environment}, seconds=timeout).splitlines()[-1])
