"""Rows in the driver's memory: pandas DataFrames and NumPy arrays."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.channels.memory.categories import is_arrow as is_arrow, of_arrow as of_arrow
    from trainers.channels.memory.given import (
        Chosen as Chosen,
        from_array as from_array,
        from_frame as from_frame,
        from_parts as from_parts,
        is_frame as is_frame,
        plain_array as plain_array,
    )
    from trainers.channels.memory.memory import Memory as Memory

load_when_used(__name__)
