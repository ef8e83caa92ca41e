"""The end of Ray's processes: one that hangs on its way out is ended by the kernel.

Ray 2.60's workers end through the destructors of their C++ core, and one of those may wait for ever for a lock of an
event loop that is destroyed with it (`~Publisher`, called from `~CoreWorkerProcessImpl`): seen in Ray Train's
controllers on busy cores. Ray counts such an actor as dead, and its process stays until the cluster ends.
"""

from __future__ import annotations

import atexit
import signal
import threading

SECONDS = 20
"""How long a process may take from the end of its Python code until it is gone."""


def end_surely() -> None:
    """Lets this process be ended by a signal where it takes longer than `SECONDS` to end by itself.

    Nothing happens off Unix; a second call does no harm.
    """
    if hasattr(signal, "alarm"):
        atexit.register(_arm)


def _arm() -> None:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SECONDS)
