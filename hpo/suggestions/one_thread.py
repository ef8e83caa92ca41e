"""One thread: linear algebra whose last digits do not depend on how many cores are free."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from threadpoolctl import threadpool_limits

_one_at_a_time = Lock()


@contextmanager
def one_thread() -> Iterator[None]:
    """Keeps linear algebra to one thread for the length of a block, of which there is one at a time in a process.

    Sums of several threads differ in their last digits, and with them a choice between two that are nearly equal. The
    limit is the process's: of two jobs in it, the one that ends first would lift the other's.
    """
    with _one_at_a_time, threadpool_limits(1, user_api="blas"):
        yield
