"""Random generators of a training function: seeded, saved and restored."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch


def derive(seed: int, *parts: object) -> int:
    """A 63-bit seed for one purpose out of a trial's."""
    digest = hashlib.blake2b("/".join(map(str, (seed, *parts))).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def seed_all(seed: int) -> None:
    """Seeds Python's, NumPy's and PyTorch's global generators."""
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002  # Users' functions draw from it.
    torch.manual_seed(seed)


def take(device: torch.device) -> dict[str, Any]:
    """The state of all of them, in what `torch.load(weights_only=True)` takes."""
    _, keys, position, has_gauss, gauss = np.random.get_state()  # noqa: NPY002
    state: dict[str, Any] = {
        "python": random.getstate(),
        "numpy": (torch.from_numpy(np.asarray(keys).astype(np.int64)), int(position), int(has_gauss), float(gauss)),
        "torch": torch.get_rng_state(),
    }
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def put(state: dict[str, Any], device: torch.device) -> None:
    """Sets them to what `take` gave."""
    version, internal, gauss_next = state["python"]
    random.setstate((version, tuple(internal), gauss_next))
    keys, position, has_gauss, gauss = state["numpy"]
    np.random.set_state(("MT19937", keys.numpy().astype(np.uint32), position, has_gauss, gauss))  # noqa: NPY002
    torch.set_rng_state(state["torch"])
    if device.type == "cuda":
        torch.cuda.set_rng_state(state["cuda"], device)


@contextmanager
def kept(device: torch.device) -> Iterator[None]:
    """Runs a block whose draws nobody outside notices."""
    before = take(device)
    try:
        yield
    finally:
        put(before, device)
