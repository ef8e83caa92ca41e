"""What a worker's process remembers of the trials that it served."""

from __future__ import annotations

import weakref
from typing import Any

KEPT: list[weakref.ref[Any]] = []
"""Parameters and gradients of earlier trials."""
