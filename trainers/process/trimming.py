"""Memory that is free goes back to the system."""

from __future__ import annotations

import ctypes
import gc


def trim() -> None:
    """Gives back what is free in this process, which the C library would keep for later.

    Nothing happens where that is not GNU's.
    """
    gc.collect()
    give_back = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if give_back is not None:
        give_back(0)
