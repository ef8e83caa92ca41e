"""OpenMP threads that sleep while they wait, instead of spinning on cores that other processes need.

XGBoost, PyTorch and scikit-learn bring GNU's runtime, libgomp, each in its wheel. Its threads spin 300,000 times, for
milliseconds, before they sleep; where another process has a thread's core, its peers spin through all of their own
share. libgomp's manual has both variables and the shorter spinning that `calm_loaded` brings about:
https://gcc.gnu.org/onlinedocs/libgomp/GOMP_005fSPINCOUNT.html
https://gcc.gnu.org/onlinedocs/libgomp/OMP_005fWAIT_005fPOLICY.html

tests/process/trainers/process/test_openmp.py fails when a library's copy behaves in another way than that.
"""

from __future__ import annotations

import ctypes
import os
import re
import threading
from pathlib import Path

VARIABLE, POLICY = "GOMP_SPINCOUNT", "OMP_WAIT_POLICY"
"""What libgomp reads once, as it is loaded; who sets either decides for themselves."""

SPINS = "1000"
"""Some ten microseconds: on an idle machine, threads that sleep at once cost more."""

PARKED_SECONDS = 10.0
"""How long a copy's threads may take to start; they come later where the machine is slower than that."""

_MAPS = Path("/proc/self/maps")
_too_late: set[str] = set()
"""Copies that were loaded before the variable was set."""


def spin_less() -> None:
    """Lets each libgomp that is loaded from now on, here and in child processes, spin `SPINS` times.

    Nothing changes where the user has set either variable.
    """
    if VARIABLE in os.environ or POLICY in os.environ:
        return
    os.environ[VARIABLE] = SPINS
    _too_late.update(loaded())


def calm_loaded() -> None:
    """Lets those copies spin less, too, that were loaded before `spin_less`; a second call does nothing.

    While a process has more OpenMP threads than it has CPUs, libgomp spins 100 times only. So each copy gets as many
    more, which sleep as long as the process lives.
    """
    while _too_late:
        parked = threading.Event()
        path = _too_late.pop()
        # A thread of its own has a team of its own, which stays while the thread does.
        threading.Thread(target=_park, args=(path, parked), name="openmp-parked", daemon=True).start()
        parked.wait(PARKED_SECONDS)


def loaded() -> set[str]:
    """The paths of the copies of libgomp that this process has loaded; none where there is no `/proc`."""
    maps = _MAPS.read_text(errors="surrogateescape") if _MAPS.exists() else ""
    return set(re.findall(r"/.*/libgomp[^/\s]*\.so[^/\s]*$", maps, flags=re.MULTILINE))


def _park(path: str, parked: threading.Event) -> None:
    try:
        runtime = ctypes.CDLL(path)
        threads = runtime.omp_get_num_procs() + 1
        if not _may_start(threads):
            return
        # What compilers make of `#pragma omp parallel`; each thread calls free(NULL), which does nothing.
        runtime.GOMP_parallel(ctypes.CDLL(None).free, None, threads, 0)
    except (OSError, AttributeError):
        return  # The file is gone, or is another library.
    finally:
        parked.set()
    threading.Event().wait()


def _may_start(threads: int) -> bool:
    """Whether this process may have so many threads more; where it may not, libgomp ends the process."""
    over = threading.Event()
    trial = [threading.Thread(target=over.wait, daemon=True) for _ in range(threads)]
    started = []
    try:
        for thread in trial:
            thread.start()
            started.append(thread)
    except RuntimeError:
        return False
    finally:
        over.set()
        for thread in started:
            thread.join()
    return True
