"""Guard: calls of another library's searcher and scheduler, with random numbers of their own, and their errors."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from trainers.errors import SearchError, in_words

T = TypeVar("T")


class Guard:
    """What the searcher and the scheduler of one search are called through.

    Some draw from Python's or NumPy's global generator (ray 2.60: ASHA with several brackets; HpBandSter). Those have
    a state of their own while one is called, so that the seed decides, and nothing else of the process is disturbed.

    Args:
        seed: of that state, 0 to 2**32 - 1.
    """

    def __init__(self, seed: int) -> None:
        self._states = random.Random(seed).getstate(), np.random.RandomState(seed).get_state()
        self._fault: SearchError | None = None

    def ask(self, who: str, what: str, call: Callable[[], T]) -> T:
        """The answer to a question that the search cannot go on without.

        Args:
            who: is asked.
            what: it was asked for, for the error.
            call: asks.

        Raises:
            SearchError: it raised instead, now or when it was told something before.
        """
        self.check()
        try:
            with self._own_random():
                return call()
        except SearchError:
            raise
        except Exception as error:
            raise SearchError(f"{who} raised, asked for {what}: {in_words(error)}") from error

    def tell(self, who: str, what: str, call: Callable[[], T], otherwise: T) -> T:
        """Tells something; what is raised then is raised at the next question, when all is in the record.

        Args:
            who: is told.
            what: for the error.
            call: tells.
            otherwise: the answer in the place of one that raised.
        """
        try:
            with self._own_random():
                return call()
        except Exception as error:
            if self._fault is None:
                self._fault = SearchError(f"{who} raised, told {what}: {in_words(error)}")
                self._fault.__cause__ = error
            return otherwise

    def check(self) -> None:
        """Raises what was raised when something was told.

        Raises:
            SearchError: the first of it.
        """
        if self._fault is not None:
            raise self._fault

    @contextmanager
    def _own_random(self) -> Iterator[None]:
        before = random.getstate(), np.random.get_state()  # noqa: NPY002  # The global one is what it is about.
        _set(self._states)
        try:
            yield
        finally:
            self._states = random.getstate(), np.random.get_state()  # noqa: NPY002
            _set(before)


def _set(states: tuple[tuple[object, ...], object]) -> None:
    random.setstate(states[0])
    np.random.set_state(states[1])  # type: ignore[arg-type]  # noqa: NPY002
