"""Devices that workers train on: memory between trials, and errors that break them."""

from typing import TYPE_CHECKING

from trainers.lazy import load_when_used

if TYPE_CHECKING:
    from trainers.pytorch.devices.faults import breaks as breaks, within as within
    from trainers.pytorch.devices.memory import collect as collect, forget as forget, tidy as tidy

load_when_used(__name__)
