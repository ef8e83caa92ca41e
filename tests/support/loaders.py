"""Numbered rows, and samplers of somebody's own that draw them by each library's generator."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import torch
from torch.utils.data import Sampler, TensorDataset

ROWS = 100
NUMBERS = TensorDataset(torch.arange(ROWS), torch.arange(ROWS) % 2)


class OddFirst(Sampler[int]):
    """A sampler of somebody's own: odd rows before even ones, each in an order drawn from a global generator."""

    def __init__(self, draw) -> None:
        self.draw = draw

    def __len__(self) -> int:
        return ROWS

    def __iter__(self) -> Iterator[int]:
        return iter(self.draw(range(1, ROWS, 2)) + self.draw(range(0, ROWS, 2)))


def by_python(rows: range) -> list[int]:
    return random.sample(rows, len(rows))


def by_numpy(rows: range) -> list[int]:
    return np.random.permutation(rows).tolist()  # noqa: NPY002


def by_torch(rows: range) -> list[int]:
    return [rows[at] for at in torch.randperm(len(rows))]


class Lengths(Sampler[list[int]]):
    """Batches of its own lengths, which differ from pass to pass."""

    def __len__(self) -> int:
        return ROWS

    def __iter__(self) -> Iterator[list[int]]:
        rows, at = by_torch(range(ROWS)), 0
        while at < ROWS:
            size = random.randint(1, 9)
            yield rows[at : at + size]
            at += size
