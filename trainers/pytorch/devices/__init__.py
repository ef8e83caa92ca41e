"""Devices that workers train on: precision, memory between trials, and errors that break them."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.pytorch.devices.faults import breaks as breaks, within as within
    from trainers.pytorch.devices.memory import forget as forget, tidy as tidy
    from trainers.pytorch.devices.precision import check_precision as check_precision

load_when_used(__name__)
