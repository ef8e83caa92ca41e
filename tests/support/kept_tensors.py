"""Tensors of earlier trials in a worker's process."""

from __future__ import annotations

import weakref
from typing import Any

KEPT: list[weakref.ref[Any]] = []
"""Parameters and gradients of earlier trials."""
