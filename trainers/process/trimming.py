"""Memory that is free goes back to the system."""

from __future__ import annotations

import ctypes
import gc
import sys


def trim() -> None:
    """Gives back what is free in this process, which the C library and Arrow's would keep for later.

    Of a C library that is not GNU's nothing is asked.
    """
    # The young objects: a whole collection takes a third of a second where Ray and PyTorch are loaded.
    gc.collect(1)
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if give_back is not None:
        give_back(0)
